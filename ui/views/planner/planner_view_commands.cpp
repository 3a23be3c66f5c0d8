// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the Planner view does with a plan: runs it, hands out its command line, its table and its picture.
#include <QBuffer>
#include <QClipboard>
#include <QFileDialog>
#include <QGuiApplication>
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"
#include "ui/views/common/save_file.h"
#include "ui/views/planner/plan_curves.h"
#include "ui/views/planner/planner_view.h"

namespace vitrine::ui {

namespace {

/// As the name of the file asks for it: PNG or SVG.
QByteArray pictureOf(PlanCurves& curves, const QString& path) {
    if (!path.endsWith(QLatin1String(".png"), Qt::CaseInsensitive)) {
        return curves.svg();
    }
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    curves.picture(curves.size(), 2).save(&buffer, "PNG");
    return bytes;
}

} // namespace

bool PlannerView::perform(const QString& action) {
    if (action == QLatin1String("compare.swap") && before_) {
        PlanDraft back = std::exchange(before_, draft_).value();
        setDraft(std::move(back));
        return true;
    }
    if (action == QLatin1String("edit.copy-why")) {
        if (const QString line = draft_.commandLine(); !line.isEmpty()) {
            QGuiApplication::clipboard()->setText(line);
            setReadout(tr("Copied: %1").arg(line));
        }
        return true;
    }
    return DocumentView::perform(action);
}

QString PlannerView::whyNot(const QString& action) const {
    if (action == QLatin1String("edit.copy-why")) {
        return draft_.complete() ? QString() : tr("no model is chosen");
    }
    return DocumentView::whyNot(action);
}

void PlannerView::start() {
    const engine::Experiment experiment = draft_.toRun();
    const QString json = textOf(experiment.jsonText());
    RunController* runs = context().runs;
    const bool kept = document() != nullptr && document()->isOpen() && !document()->readOnly();
    if (runs == nullptr || runs->running() || !kept || !experiment.workload().formView.empty()) {
        emit experimentWanted(json); // its form starts it, and says where it is kept
        return;
    }
    showError({});
    runs->start(json.toStdString(), document()->path());
    if (runs->running()) {
        setReadout(tr("The run is saved in %1").arg(document()->path()));
        emit openView(QStringLiteral("memory"));
    }
}

void PlannerView::exportTable() {
    if (!answer_) {
        return;
    }
    const QString path = QFileDialog::getSaveFileName(this, tr("Export the table of sets"), QStringLiteral("plan.csv"),
                                                      tr("CSV (*.csv)"));
    if (path.isEmpty()) {
        return;
    }
    if (writeFile(path, asCommaSeparated(*planSetTable(*answer_)).toUtf8())) {
        setReadout(tr("The table is in %1").arg(path));
    }
}

bool PlannerView::writeFile(const QString& path, const QByteArray& bytes) {
    const QString error = saveFile(path, bytes);
    if (!error.isEmpty()) {
        showError(error);
    }
    return error.isEmpty();
}

void PlannerView::exportPicture() {
    if (!answer_) {
        return;
    }
    const QString path = QFileDialog::getSaveFileName(this, tr("Export the curves"), QStringLiteral("plan.svg"),
                                                      tr("SVG (*.svg);;PNG (*.png)"));
    if (path.isEmpty()) {
        return;
    }
    if (writeFile(path, pictureOf(*curves_, path))) {
        setReadout(tr("The picture is in %1").arg(path));
    }
}

void PlannerView::exportCommand() {
    perform(QStringLiteral("edit.copy-why"));
}

void PlannerView::openPast(int series, int point) {
    if (const PastRun* run = pastRunAt(pastRuns_, pastDots_, series, point); run != nullptr && document() != nullptr) {
        document()->setRunA(run->run);
        emit openView(QStringLiteral("memory"));
    }
}

void PlannerView::openStepOf(const std::string& place) {
    const auto isSuch = [this](const sessions::RunInfo& run) {
        const std::optional<engine::Experiment> experiment = engine::Experiment::read(run.specJson);
        return experiment && !experiment->isPlan() && experiment->workload().name == "finetune" &&
               textOf(experiment->text("model")) == draft_.model();
    };
    const std::vector<sessions::RunInfo> runs =
        document() != nullptr ? document()->runs() : std::vector<sessions::RunInfo>();
    const sessions::RunInfo* shown = runInfo(runA());
    const auto other = std::ranges::find_if(runs, isSuch);
    if (shown != nullptr && isSuch(*shown)) {
        emit openView(QStringLiteral("fine-tune/step"));
    } else if (other != runs.end()) {
        document()->setRunA(other->id);
        emit openView(QStringLiteral("fine-tune/step"));
    } else {
        setReadout(tr("%1: no run of this model is in the session that shows it").arg(textOf(place)));
    }
}

} // namespace vitrine::ui
