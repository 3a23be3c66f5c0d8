// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/gui/run_choice.h"

#include <algorithm>
#include <functional>

#include "engine/workload/experiment/workload_table.h"
#include "ui/models/batching/batch_summary.h"

namespace vitrine::app {

namespace {

/// The newest run that a view has most to show of; 0 when there is none.
sessions::RunId newestRun(const ui::SessionDocument& document,
                          const std::function<bool(const sessions::RunInfo&)>& fits) {
    const auto& runs = document.runs();
    const auto found = std::find_if(runs.rbegin(), runs.rend(), fits);
    return found == runs.rend() ? 0 : found->id;
}

} // namespace

void chooseRuns(ui::SessionDocument& document, const QString& view) {
    const auto shown = [name = view.toStdString()](const sessions::RunInfo& run) {
        const engine::Workload* workload = engine::workloadOfRun(run.workload);
        return workload != nullptr && engine::showsIn(*workload, name);
    };
    const auto done = [&shown](const sessions::RunInfo& run) {
        return run.status == sessions::RunStatus::Done && shown(run);
    };
    const auto doneBatch = [&done](const sessions::RunInfo& run) {
        return done(run) && engine::workloadOfRun(run.workload)->manyAnswers;
    };
    sessions::RunId a = newestRun(document, [](const auto&) { return true; });
    sessions::RunId b = 0;
    sessions::RunId wanted = 0;
    if (view == QLatin1String("run")) {
        wanted = newestRun(document, [&](const auto& run) {
            return done(run) && engine::findWorkload(run.workload) != nullptr; // no plan
        });
    } else if (view == QLatin1String("kernels")) {
        wanted = newestRun(document,
                           [&](const auto& run) { return run.metricsJson.find("\"kernels\"") != std::string::npos; });
        b = wanted == 0 ? 0 : newestRun(document, [&](const auto& run) {
            return run.id != wanted && run.metricsJson.find("\"kernels\"") != std::string::npos;
        });
    } else if (view == QLatin1String("kv-cache")) {
        wanted = newestRun(document, done);
    } else if (view == QLatin1String("batching")) {
        wanted = newestRun(document, [&](const auto& run) {
            return doneBatch(run) && run.metricsJson.find("\"continuous\"") != std::string::npos;
        });
        wanted = wanted != 0 ? wanted : newestRun(document, doneBatch);
        b = ui::batchPartner(document.runs(), wanted);
    } else if (view == QLatin1String("load") || view == QLatin1String("precision")) {
        wanted = newestRun(document, done);
    } else if (view == QLatin1String("mask") || view == QLatin1String("fine-tune") || view == QLatin1String("rl")) {
        wanted = newestRun(document, done);
        b = wanted == 0 ? 0 : newestRun(document, [&](const auto& run) { return run.id != wanted && done(run); });
    } else if (view == QLatin1String("compare")) {
        b = newestRun(document, [&](const auto& run) { return run.id != a && shown(run); });
    }
    document.setRunA(wanted != 0 ? wanted : a);
    document.setRunB(b);
}

} // namespace vitrine::app
