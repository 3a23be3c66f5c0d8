// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_times.h"

#include <QObject>
#include <QStringList>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kShortestMeasured = 256;

std::optional<MaskDirectionTimes> directionOf(const Json& metrics, const std::string& name) {
    const std::optional<double> measured = base::numberAt(metrics, (name + "_ms").c_str());
    if (!measured) {
        return std::nullopt;
    }
    return MaskDirectionTimes{*measured, base::numberAt(metrics, ("full_" + name + "_ms").c_str()),
                              base::numberAt(metrics, ("predicted_" + name + "_ms").c_str()),
                              base::numberAt(metrics, (name + "_tflops").c_str())};
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
    times.forward = directionOf(metrics, "forward");
    times.backward = directionOf(metrics, "backward");
    if (!times.forward) {
        return std::nullopt;
    }
    times.device = textOf(base::textAt(metrics, "device"));
    times.dtype = textOf(base::textAt(metrics, "dtype"));
    times.cpu = base::textAt(metrics, "backend") == "cpu";
    times.estimated = base::textAt(metrics, "backend") == "meta";
    const auto size = [&metrics](const char* key, std::int64_t other) {
        return static_cast<std::int64_t>(base::numberAt(metrics, key).value_or(static_cast<double>(other)));
    };
    times.sizes = {size("batch", 1),  size("heads", 1),    size("kv_heads", 1),    size("q_len", 0),
                   size("kv_len", 0), size("head_dim", 0), size("block_size", 128)};
    times.sparsity = base::numberAt(metrics, "block_sparsity");
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
