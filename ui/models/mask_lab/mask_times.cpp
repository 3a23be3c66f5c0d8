// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_times.h"

#include <QObject>
#include <QStringList>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kShortestMeasured = 256;

std::optional<MaskDirectionTimes> directionOf(const Json& metrics, bool backward) {
    using namespace engine::result;
    const auto number = [&](const engine::ResultField& forward, const engine::ResultField& otherwise) {
        return engine::numberOf(metrics, backward ? otherwise : forward);
    };
    const std::optional<double> measured = number(kForwardMs, kBackwardMs);
    if (!measured) {
        return std::nullopt;
    }
    return MaskDirectionTimes{*measured, number(kFullForwardMs, kFullBackwardMs),
                              number(kPredictedForwardMs, kPredictedBackwardMs),
                              number(kForwardTflops, kBackwardTflops)};
}

double fullFlops(const MaskSizes& sizes) {
    return 4.0 * static_cast<double>(sizes.batch) * static_cast<double>(sizes.heads) *
           static_cast<double>(sizes.queries) * static_cast<double>(sizes.keys) * static_cast<double>(sizes.headDim);
}

} // namespace

std::optional<double> MaskDirectionTimes::saved() const {
    return full && *full > 0 ? std::optional(1 - measured / *full) : std::nullopt;
}

QString MaskTimes::where() const {
    const QString heads = sizes.heads == 1 ? QObject::tr("1 head") : QObject::tr("%1 heads").arg(sizes.heads);
    return QObject::tr("%1, %2, %3, D %4").arg(device, dtype, heads).arg(sizes.headDim);
}

std::optional<MaskTimes> maskTimes(const std::string& metricsJson) {
    const Json metrics = base::parsedObject(metricsJson);
    MaskTimes times;
    times.forward = directionOf(metrics, false);
    times.backward = directionOf(metrics, true);
    if (!times.forward) {
        return std::nullopt;
    }
    times.device = textOf(engine::textOf(metrics, engine::result::kDevice));
    times.dtype = textOf(engine::textOf(metrics, engine::result::kDtype));
    times.cpu = engine::textOf(metrics, engine::result::kBackend) == "cpu";
    times.estimated = engine::textOf(metrics, engine::result::kBackend) == "meta";
    const auto size = [&metrics](const engine::ResultField& field, std::int64_t other) {
        return static_cast<std::int64_t>(engine::numberOf(metrics, field).value_or(static_cast<double>(other)));
    };
    using namespace engine::result;
    times.sizes = {size(kBatch, 1), size(kHeads, 1),   size(kKvHeads, 1),    size(kQLen, 0),
                   size(kKvLen, 0), size(kHeadDim, 0), size(kBlockSize, 128)};
    times.sparsity = engine::numberOf(metrics, engine::result::kBlockSparsity);
    return times;
}

MaskSizes measuredSizes(const MaskSizes& sizes, bool gpu, QString* said) {
    MaskSizes out = sizes;
    const double most = gpu ? kMostGpuFlops : kMostCpuFlops;
    while (fullFlops(out) > most && out.batch > 1) {
        out.batch = (out.batch + 1) / 2;
    }
    // Groups of query heads stay whole.
    const std::int64_t group = std::max<std::int64_t>(1, sizes.heads / std::max<std::int64_t>(1, sizes.kvHeads));
    while (fullFlops(out) > most && out.kvHeads > 1) {
        out.kvHeads = out.kvHeads / 2;
        out.heads = out.kvHeads * group;
    }
    while (fullFlops(out) > most && out.heads > 1 && out.kvHeads == 1) {
        out.heads = out.heads / 2;
    }
    while (fullFlops(out) > most && std::max(out.queries, out.keys) > kShortestMeasured) {
        std::int64_t& longer = out.queries >= out.keys ? out.queries : out.keys;
        longer = std::max(kShortestMeasured, longer / 2);
    }
    if (said != nullptr) {
        QStringList smaller;
        const auto note = [&smaller](std::int64_t now, std::int64_t asked, const QString& what) {
            if (now != asked) {
                smaller << QObject::tr("%1 of %2 %3").arg(countText(now), countText(asked), what);
            }
        };
        note(out.batch, sizes.batch, QObject::tr("sequences"));
        note(out.heads, sizes.heads, QObject::tr("heads"));
        note(out.queries, sizes.queries, QObject::tr("queries"));
        note(out.keys, sizes.keys, QObject::tr("keys"));
        *said = smaller.join(QStringLiteral(", "));
    }
    return out;
}

Json measureExperiment(const MaskSource& source, const std::string& mask, const std::string& score,
                       const MaskSizes& sizes, const QString& backend, int device) {
    const MaskSizes measured = measuredSizes(sizes, backend == QLatin1String("cuda"));
    Json experiment = maskExperiment(source, mask, score, measured);
    if (!(measured == sizes)) {
        experiment["stands_for"] = sizesText(sizes);
    }
    experiment["backend"] = backend.toStdString();
    if (backend == QLatin1String("cuda")) {
        experiment["device"] = device;
    }
    experiment["backward"] = true;
    experiment["compare_full"] = true;
    experiment["repeat"] = 3;
    return experiment;
}

QString millisecondsText(double milliseconds) {
    return durationText(static_cast<base::TimeNs>(std::llround(milliseconds * 1e6)));
}

} // namespace vitrine::ui
