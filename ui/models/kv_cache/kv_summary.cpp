// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kv_cache/kv_summary.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_values.h"
#include "base/trace.h"
#include "engine/workload/experiment/ending_words.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "profiler/analysis/kv_curve.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;
constexpr std::uint64_t kMostTokenBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMostShownGroups = 16, kMostLayers = 4096;

/// 0 where the field is missing or above `most`.
std::int64_t wholeOf(const Json& object, const engine::ResultField& field, std::int64_t most) {
    const auto value = engine::countOf(object, field);
    return value && *value <= static_cast<std::uint64_t>(most) ? static_cast<std::int64_t>(*value) : 0;
}

std::optional<KvLayerGroup> groupOf(const Json& row) {
    if (!row.is_object()) {
        return std::nullopt;
    }
    KvLayerGroup group;
    group.window = wholeOf(row, engine::result::kWindow, kMostTokens);
    const std::string name = engine::textOf(row, engine::result::kName);
    group.name = !name.empty()      ? QString::fromStdString(name)
                 : group.window > 0 ? QStringLiteral("sliding")
                                    : QStringLiteral("full");
    group.bytesPerToken = static_cast<std::uint64_t>(
        wholeOf(row, engine::result::kBytesPerToken, static_cast<std::int64_t>(kMostTokenBytes)));
    group.pageTokens = wholeOf(row, engine::result::kPageTokens, kMostTokens);
    if (const Json& layers = engine::rowsOf(row, engine::result::kLayers); layers.size() <= kMostLayers) {
        for (const Json& layer : layers) {
            if (layer.is_number_integer()) {
                group.layers.push_back(layer.get<int>());
            }
        }
    }
    return group.bytesPerToken > 0 ? std::optional(group) : std::nullopt;
}

std::uint64_t rounded(double bytes) {
    return bytes > 0 && bytes < 9e18 ? static_cast<std::uint64_t>(std::llround(bytes)) : 0;
}

FlatCell unknownCell() {
    return {unknownText(), QVariant(-1.0), QString()};
}

} // namespace

FlatCell kvBytesCell(std::uint64_t bytes) {
    FlatCell cell(bytesText(bytes), QVariant::fromValue<qulonglong>(bytes), QString::number(bytes));
    cell.tip = exactBytesText(bytes);
    return cell;
}

std::uint64_t KvLayerGroup::bytes(double tokens) const {
    const double kept =
        window > 0 ? std::min(tokens, static_cast<double>(std::max<std::int64_t>(window - 1, 1))) : tokens;
    return rounded(kept * static_cast<double>(bytesPerToken));
}

std::uint64_t KvLayerGroup::pageBytes(double tokens) const {
    if (pageTokens <= 0 || bytesPerToken == 0) {
        return bytes(tokens);
    }
    const double page = static_cast<double>(pageTokens) * static_cast<double>(bytesPerToken);
    return rounded(std::ceil(static_cast<double>(bytes(tokens)) / page - 1e-9) * page);
}

std::uint64_t KvGeometry::pages(double tokens) const {
    const double each = tokens / static_cast<double>(sequences);
    std::uint64_t sum = 0;
    for (const KvLayerGroup& group : groups) {
        sum += rounded(static_cast<double>(group.pageBytes(each)) * static_cast<double>(sequences));
    }
    return sum;
}

std::uint64_t KvGeometry::full(double tokens) const {
    std::uint64_t sum = 0;
    for (const KvLayerGroup& group : groups) {
        sum += group.sliding() ? 0 : group.bytes(tokens);
    }
    return sum;
}

std::uint64_t KvGeometry::sliding(double tokens) const {
    std::uint64_t sum = 0;
    for (const KvLayerGroup& group : groups) {
        const double each = tokens / static_cast<double>(sequences);
        sum += group.sliding() ? rounded(static_cast<double>(group.bytes(each)) * static_cast<double>(sequences)) : 0;
    }
    return sum;
}

std::uint64_t KvGeometry::noWindow(double tokens) const {
    double sum = 0;
    for (const KvLayerGroup& group : groups) {
        sum += static_cast<double>(group.bytesPerToken) * tokens;
    }
    return rounded(sum);
}

std::int64_t KvGeometry::window() const {
    std::int64_t largest = 0;
    for (const KvLayerGroup& group : groups) {
        largest = std::max(largest, group.window);
    }
    return largest;
}

const KvSample& KvSummary::at(std::int64_t tokens) const {
    static const KvSample kNone;
    if (samples.empty()) {
        return kNone;
    }
    const auto after = std::upper_bound(samples.begin(), samples.end(), tokens,
                                        [](std::int64_t t, const KvSample& s) { return t < s.tokens; });
    return after == samples.begin() ? samples.front() : *(after - 1);
}

std::optional<std::int64_t> KvSummary::unexplained(const KvSample& sample) const {
    const bool paged =
        geometry && std::ranges::all_of(geometry->groups, [](const auto& g) { return g.pageTokens > 0; });
    if (!paged || geometry->sequences != 1 || planned) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(sample.total()) -
           static_cast<std::int64_t>(geometry->pages(static_cast<double>(sample.tokens)));
}

std::optional<KvGeometry> kvGeometry(const sessions::RunInfo& run) {
    const Json metrics = Json::parse(run.metricsJson, nullptr, false);
    KvGeometry geometry;
    geometry.dtype = QString::fromStdString(engine::textOf(metrics, engine::result::kKvCacheDtype));
    geometry.headDim = wholeOf(metrics, engine::result::kKvCacheHeadDim, kMostTokens);
    geometry.contextLimit = wholeOf(metrics, engine::result::kKvCacheContextLimit, kMostTokens);
    const Json& groups = engine::rowsOf(metrics, engine::result::kKvCacheGroups);
    if (groups.size() <= kMostShownGroups) {
        for (const Json& row : groups) {
            if (auto group = groupOf(row)) {
                geometry.groups.push_back(std::move(*group));
            }
        }
    }
    std::stable_sort(geometry.groups.begin(), geometry.groups.end(),
                     [](const auto& a, const auto& b) { return a.window < b.window; });
    constexpr std::int64_t kMostSequences = 1'000'000;
    std::int64_t sequences = wholeOf(metrics, engine::result::kBatch, kMostSequences);
    if (sequences == 0) {
        sequences = static_cast<std::int64_t>(engine::rowsOf(metrics, engine::result::kRequests).size());
    }
    if (const auto spec = engine::Experiment::read(run.specJson); sequences == 0 && spec) {
        sequences = std::min(spec->maybeInteger("batch").value_or(0), kMostSequences);
    }
    geometry.sequences = std::max<std::int64_t>(1, sequences);
    return geometry.groups.empty() ? std::nullopt : std::optional(geometry);
}

namespace {

std::optional<KvTurn> turnOf(const sessions::RunInfo& run, const profiler::RunTimeline* timeline) {
    const Json metrics = Json::parse(run.metricsJson, nullptr, false);
    KvTurn turn;
    turn.promptTokens = wholeOf(metrics, engine::result::kPromptTokens, kMostTokens);
    turn.answerTokens = wholeOf(metrics, engine::result::kGeneratedTokens, kMostTokens);
    if (turn.promptTokens <= 0) {
        return std::nullopt;
    }
    base::TimeNs begin = -1, promptEnd = -1, end = -1;
    if (timeline != nullptr) {
        for (const profiler::ScopeRow phase : timeline->scopes().phases()) {
            const std::string_view name = timeline->text(phase.name);
            if (name == "prefill") { // of a run that repeats itself the last one counts, as for its samples
                begin = phase.begin;
                promptEnd = end = phase.end;
            } else if (name == "decode") {
                end = phase.end;
            }
        }
    }
    if (begin >= 0 && promptEnd > begin && end >= promptEnd) {
        turn.begin = begin;
        turn.promptEnd = promptEnd;
        turn.end = end;
    }
    return turn;
}

} // namespace

KvSummary kvSummary(const sessions::RunInfo& run, const profiler::RunTimeline* timeline) {
    KvSummary facts;
    facts.geometry = kvGeometry(run);
    if (facts.geometry && facts.geometry->sequences == 1) {
        facts.turn = turnOf(run, timeline);
    }
    facts.planned = runSummary(run).virtualTime;
    if (const auto experiment = engine::Experiment::read(run.specJson)) {
        facts.ending = textOf(engine::endingWords(base::parsedObject(run.metricsJson), *experiment));
    }
    if (timeline == nullptr) {
        return facts;
    }
    const profiler::KvCurve curve = profiler::kvCurve(*timeline);
    for (const profiler::KvPoint& point : curve.points) {
        if (!(point.tokens > 0) || point.tokens > static_cast<double>(kMostTokens)) {
            continue; // an empty cache says nothing about growth
        }
        KvSample sample{point.time, static_cast<std::int64_t>(point.tokens), 0, 0};
        for (std::size_t group = 0; group < curve.groups.size() && group < point.bytes.size(); ++group) {
            (curve.groups[group] == "sliding" ? sample.sliding : sample.full) += rounded(point.bytes[group]);
        }
        facts.samples.push_back(sample);
    }
    std::stable_sort(facts.samples.begin(), facts.samples.end(),
                     [](const KvSample& a, const KvSample& b) { return a.tokens < b.tokens; });
    std::vector<KvSample> unique;
    unique.reserve(facts.samples.size());
    for (const KvSample& sample : facts.samples) {
        if (!unique.empty() && unique.back().tokens == sample.tokens) {
            unique.back() = sample;
        } else {
            unique.push_back(sample);
        }
    }
    facts.samples = std::move(unique);
    return facts;
}

std::vector<KvSample> thinned(const std::vector<KvSample>& samples, std::size_t count) {
    if (samples.size() <= count || count < 2) {
        return samples;
    }
    const double first = static_cast<double>(samples.front().tokens), last = static_cast<double>(samples.back().tokens);
    std::vector<KvSample> out;
    for (std::size_t i = 0; i < count; ++i) {
        const double wanted = first + (last - first) * static_cast<double>(i) / static_cast<double>(count - 1);
        const auto near = std::lower_bound(samples.begin(), samples.end(), wanted, [](const KvSample& s, double t) {
            return static_cast<double>(s.tokens) < t;
        });
        const KvSample& sample = near == samples.end() ? samples.back() : *near;
        if (out.empty() || out.back().tokens != sample.tokens) {
            out.push_back(sample);
        }
    }
    return out;
}

FlatTreePtr kvSampleTable(const KvSummary& facts, std::size_t limit) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Tokens"), true},
                      {QObject::tr("Full layers"), true},
                      {QObject::tr("Sliding layers"), true},
                      {facts.planned ? QObject::tr("Planned pages") : QObject::tr("Held"), true},
                      {QObject::tr("Kept"), true},
                      {QObject::tr("Page rounding"), true},
                      {QObject::tr("Without windows"), true}};
    for (const KvSample& sample : thinned(facts.samples, limit)) {
        FlatNode row;
        row.key = static_cast<quint64>(sample.tokens);
        row.cells = {
            {countText(sample.tokens), QVariant::fromValue<qlonglong>(sample.tokens), QString::number(sample.tokens)},
            kvBytesCell(sample.full),
            kvBytesCell(sample.sliding),
            kvBytesCell(sample.total())};
        if (facts.geometry) {
            const auto tokens = static_cast<double>(sample.tokens);
            const std::uint64_t kept = facts.geometry->kept(tokens);
            row.cells.push_back(kvBytesCell(kept));
            row.cells.push_back(kvBytesCell(sample.total() - std::min(kept, sample.total())));
            row.cells.push_back(kvBytesCell(facts.geometry->noWindow(tokens)));
        } else {
            row.cells.insert(row.cells.end(), 3, unknownCell());
        }
        table->nodes.push_back(std::move(row));
    }
    return table;
}

std::size_t kvLayers(const KvGeometry& geometry, bool sliding) {
    std::size_t count = 0;
    for (const KvLayerGroup& group : geometry.groups) {
        count += group.sliding() == sliding ? group.layers.size() : 0;
    }
    return count;
}

std::vector<KvGroupBytes> kvGroupBytes(const KvSummary& facts, std::int64_t tokens) {
    std::vector<KvGroupBytes> out;
    if (!facts.geometry || facts.empty()) {
        return out;
    }
    const KvGeometry& geometry = *facts.geometry;
    const KvSample& sample = facts.at(tokens);
    const auto sequences = static_cast<double>(geometry.sequences);
    const double each = static_cast<double>(tokens) / sequences;
    for (const KvLayerGroup& group : geometry.groups) {
        const auto share = static_cast<double>(group.layers.size()) /
                           static_cast<double>(std::max<std::size_t>(1, kvLayers(geometry, group.sliding())));
        KvGroupBytes bytes;
        bytes.held = rounded(static_cast<double>(group.sliding() ? sample.sliding : sample.full) * share);
        bytes.kept = rounded(static_cast<double>(group.bytes(each)) * sequences);
        bytes.all = rounded(static_cast<double>(group.bytesPerToken) * static_cast<double>(tokens));
        // Counters name kinds, so a held number belongs to a group only when its kind has one.
        bytes.ownHeld = share >= 1;
        out.push_back(bytes);
    }
    return out;
}

FlatTreePtr kvLayerTable(const KvSummary& facts, const std::vector<KvGroupBytes>& held) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {
        {QObject::tr("Group"), false},    {QObject::tr("Layers"), true},
        {QObject::tr("Which"), false},    {QObject::tr("Window, tokens"), true},
        {QObject::tr("One token"), true}, {facts.planned ? QObject::tr("Planned pages") : QObject::tr("Held"), true},
        {QObject::tr("Kept"), true},      {QObject::tr("Without windows"), true},
        {QObject::tr("Kept share"), true}};
    if (!facts.geometry) {
        return table;
    }
    for (std::size_t i = 0; i < facts.geometry->groups.size() && i < held.size(); ++i) {
        const KvLayerGroup& group = facts.geometry->groups[i];
        FlatNode row;
        row.key = i + 1;
        row.category = static_cast<int>(base::MemoryCategory::KvCache);
        row.cells = {FlatCell(QObject::tr(group.sliding() ? "sliding layers" : "full layers")),
                     {countText(static_cast<std::int64_t>(group.layers.size())),
                      QVariant::fromValue<qlonglong>(static_cast<qlonglong>(group.layers.size()))},
                     FlatCell(layerListText(group.layers)),
                     group.sliding() ? FlatCell(countText(group.window), QVariant::fromValue<qlonglong>(group.window))
                                     : FlatCell(QObject::tr("all"), QVariant(9e18)),
                     kvBytesCell(group.bytesPerToken)};
        row.cells.push_back(held[i].ownHeld ? kvBytesCell(held[i].held) : unknownCell());
        row.cells.push_back(held[i].ownKept ? kvBytesCell(held[i].kept) : unknownCell());
        row.cells.push_back(kvBytesCell(held[i].all));
        const double kept = held[i].all > 0 ? static_cast<double>(held[i].kept) / static_cast<double>(held[i].all) : 0;
        row.cells.push_back(held[i].ownKept ? FlatCell(shareText(kept), QVariant(kept)) : unknownCell());
        table->nodes.push_back(std::move(row));
    }
    return table;
}

QString layerListText(const std::vector<int>& layers) {
    QStringList parts;
    for (std::size_t i = 0; i < layers.size();) {
        std::size_t last = i;
        const int step = i + 1 < layers.size() ? layers[i + 1] - layers[i] : 0;
        while (last + 1 < layers.size() && layers[last + 1] - layers[last] == step) {
            ++last;
        }
        const std::size_t length = last - i + 1;
        if (length >= 4 && step == 1) {
            parts << QObject::tr("%1 to %2").arg(layers[i]).arg(layers[last]);
        } else if (length >= 4) {
            parts << QStringLiteral("%1, %2, … %3").arg(layers[i]).arg(layers[i + 1]).arg(layers[last]);
        } else {
            last = i;
            parts << QString::number(layers[i]);
        }
        i = last + 1;
    }
    return parts.join(QStringLiteral(", "));
}

QString kvHeldWord(bool planned) {
    return planned ? QObject::tr("planned pages") : QObject::tr("held");
}

} // namespace vitrine::ui
