// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/planned_price.h"

#include <QObject>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/sweep/queue_progress.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

engine::QueuePrice plannedPrice(const std::string& experiment, const std::string& plan) {
    engine::QueuePrice out;
    const auto read = [](const std::string& text) {
        return engine::Experiment::parse(base::parsedObject(text), "experiment");
    };
    try {
        engine::PlanPricer pricer;
        const engine::Experiment planned = read(plan);
        out = engine::priceQueued(read(experiment), planned.isPlan() ? planned : planned.asPlan(), pricer, {});
    } catch (const base::Error& error) {
        out.error = error.message();
    }
    return out;
}

QString nearestText(const engine::QueuePrice& price) {
    const QString nearest = QString::fromStdString(price.nearest);
    if (price.nearestSpec.empty()) {
        return nearest.isEmpty() ? QObject::tr("no change or pair fits") : nearest;
    }
    QString text = QObject::tr("nearest change: %1, %2").arg(nearest, bytesText(price.nearestPeak));
    if (price.nearestTime > 0) {
        const double percent = (price.nearestTime - 1) * 100;
        text += QObject::tr(", %1%2 % time")
                    .arg(percent < 0 ? QStringLiteral("−") : QStringLiteral("+"))
                    .arg(std::abs(percent), 0, 'f', 1);
    }
    return text;
}

} // namespace vitrine::ui
