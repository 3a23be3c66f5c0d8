// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kv_cache/kv_limits.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "base/trace.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

namespace {

constexpr std::int64_t kMostRoomTokens = std::int64_t{1} << 40;
constexpr double kScaleBytes = 4, kLeastSaved = 0.01;

double elementBytes(const QString& dtype) {
    return dtype == QLatin1String("float32")                                         ? 4
           : dtype == QLatin1String("bfloat16") || dtype == QLatin1String("float16") ? 2
                                                                                     : 1;
}

/// Of a row of a head: elements of one byte have a scale.
double rowBytes(const QString& dtype, std::int64_t headDim) {
    const double element = elementBytes(dtype);
    return element * static_cast<double>(headDim) + (element == 1 ? kScaleBytes : 0);
}

QString typeName(const QString& dtype) {
    return dtype == QLatin1String("bfloat16") ? QStringLiteral("BF16") : dtype.toUpper();
}

QString layersText(std::size_t count) {
    return count == 1 ? QObject::tr("1 layer") : QObject::tr("%1 layers").arg(countText(static_cast<qint64>(count)));
}

QString shareOfCache(double share) {
    return share > 0.47 && share < 0.53 ? QObject::tr("half of the cache")
                                        : QObject::tr("%1 of the cache").arg(shareText(share));
}

/// Where memory or the model ends; `byModel` is set when the model ends first.
std::optional<std::int64_t> endOf(const KvGeometry& geometry, const std::optional<KvRoom>& room, bool* byModel) {
    std::optional<std::int64_t> end;
    if (room) {
        end = kvTokensWithin(geometry, room->free());
    }
    const std::int64_t context = geometry.contextTokens();
    *byModel = context > 0 && (!end || *end >= context);
    return *byModel ? std::optional(context) : end;
}

FlatNode changeRow(const QString& name, const QString& why, const KvGeometry& changed, const KvGeometry& now,
                   const std::optional<KvRoom>& room, std::int64_t tokens) {
    const auto at = static_cast<double>(tokens);
    const std::uint64_t bytes = changed.pages(at), before = now.pages(at);
    FlatNode row;
    FlatCell difference(bytes == before ? QStringLiteral("=")
                                        : (bytes < before ? QStringLiteral("\u2212") : QStringLiteral("+")) +
                                              bytesText(bytes < before ? before - bytes : bytes - before),
                        QVariant(static_cast<double>(bytes) - static_cast<double>(before)));
    difference.delta = bytes == before ? 0 : bytes < before ? -1 : 1;
    bool byModel = false;
    const auto end = endOf(changed, room, &byModel);
    row.cells = {FlatCell(name), kvBytesCell(bytes), difference,
                 end ? FlatCell(countText(*end), QVariant::fromValue<qlonglong>(*end), QString::number(*end))
                     : FlatCell(unknownText(), QVariant(-1.0)),
                 FlatCell()};
    row.cells[0].tip = why;
    row.cells[3].tip = byModel ? QObject::tr("The model's context ends there, before memory does")
                               : QObject::tr("What is left of the budget is full there");
    return row;
}

} // namespace

std::optional<KvRoom> kvRoom(const sessions::RunInfo& run) {
    const RunSummary summary = runSummary(run);
    if (!summary.budget || !summary.peak || !summary.peakByCategory) {
        return std::nullopt;
    }
    const std::uint64_t cache = (*summary.peakByCategory)[static_cast<std::size_t>(base::MemoryCategory::KvCache)];
    return KvRoom{*summary.budget, *summary.peak - std::min(*summary.peak, cache)};
}

std::optional<KvGeometry> kvInType(const KvGeometry& geometry, const QString& dtype) {
    if (geometry.headDim <= 0) {
        return std::nullopt;
    }
    KvGeometry out = geometry;
    out.dtype = dtype;
    const double factor = rowBytes(dtype, geometry.headDim) / rowBytes(geometry.dtype, geometry.headDim);
    for (KvLayerGroup& group : out.groups) {
        group.bytesPerToken =
            static_cast<std::uint64_t>(std::llround(static_cast<double>(group.bytesPerToken) * factor));
    }
    return out;
}

KvGeometry kvWithPages(KvGeometry geometry, std::int64_t pageTokens) {
    for (KvLayerGroup& group : geometry.groups) {
        group.pageTokens =
            group.sliding() ? std::min(pageTokens, std::max<std::int64_t>(group.window - 1, 1)) : pageTokens;
    }
    return geometry;
}

KvGeometry kvWithWindow(KvGeometry geometry, std::int64_t window) {
    std::int64_t fullPage = 0;
    for (const KvLayerGroup& group : geometry.groups) {
        fullPage = group.sliding() ? fullPage : group.pageTokens;
    }
    for (KvLayerGroup& group : geometry.groups) {
        if (group.sliding()) {
            group.window = window;
            group.pageTokens = fullPage;
        }
    }
    return geometry;
}

std::int64_t kvTokensWithin(const KvGeometry& geometry, std::uint64_t bytes) {
    std::int64_t fits = 0, tooMany = kMostRoomTokens;
    if (geometry.pages(static_cast<double>(tooMany)) <= bytes) {
        return tooMany;
    }
    while (tooMany - fits > 1) {
        const std::int64_t middle = fits + (tooMany - fits) / 2;
        (geometry.pages(static_cast<double>(middle)) <= bytes ? fits : tooMany) = middle;
    }
    return fits;
}

std::vector<KvChange> kvChanges(const KvSummary& facts) {
    std::vector<KvChange> changes;
    if (!facts.geometry || facts.empty()) {
        return changes;
    }
    const KvGeometry& now = *facts.geometry;
    changes.push_back({QObject::tr("As it is"),
                       QObject::tr("%1, tokens until memory or the model ends").arg(typeName(now.dtype)),
                       now,
                       nullptr,
                       {}});
    for (const char* dtype : {"bfloat16", "fp8", "int8"}) {
        const QString name = QString::fromLatin1(dtype);
        const auto changed = kvInType(now, name);
        if (changed && name != now.dtype && rowBytes(name, now.headDim) < rowBytes(now.dtype, now.headDim)) {
            changes.push_back(
                {QObject::tr("%1 cache").arg(typeName(name)),
                 QObject::tr("%1 B for a row of a head. How close its answers are is not known: score a run with it.")
                     .arg(QString::number(rowBytes(name, now.headDim))),
                 *changed, "kv_dtype", std::string(dtype)});
        }
    }
    const auto paged = std::ranges::find_if(now.groups, [](const auto& g) { return !g.sliding() && g.pageTokens > 0; });
    for (const std::int64_t page : {16, 256}) {
        if (paged != now.groups.end() && paged->pageTokens != page) {
            changes.push_back({QObject::tr("Pages of %1").arg(page), QObject::tr("The option is --page-size."),
                               kvWithPages(now, page), "page_size", page});
        }
    }
    if (now.window() > 0) {
        changes.push_back({QObject::tr("No windows"), QObject::tr("Another model, or --sliding-cache false"),
                           kvWithWindow(now, 0), "sliding_cache", false});
    }
    return changes;
}

FlatTreePtr kvChangeTable(const KvSummary& facts, const std::optional<KvRoom>& room, std::int64_t tokens) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("A change buys")},
                      {QObject::tr("Bytes"), true},
                      {QObject::tr("Change"), true},
                      {QObject::tr("Ends at"), true},
                      {QString(), false}}; // a button that tries it
    const std::vector<KvChange> changes = kvChanges(facts);
    for (const KvChange& change : changes) {
        table->nodes.push_back(
            changeRow(change.name, change.why, change.geometry, changes.front().geometry, room, tokens));
        table->nodes.back().key = table->nodes.size();
    }
    if (!table->nodes.empty()) {
        table->nodes.front().emphasis = true;
    }
    return table;
}

namespace {

QString bySaved(const KvSummary& facts, std::uint64_t held, std::uint64_t without, const QString& where) {
    const std::size_t layers = facts.geometry ? kvLayers(*facts.geometry, true) : 0;
    const std::uint64_t saved = without - std::min(held, without);
    const double share = without > 0 ? static_cast<double>(saved) / static_cast<double>(without) : 0;
    const QString window = countText(facts.geometry ? facts.geometry->window() : 0);
    if (share < kLeastSaved) {
        return QObject::tr("The window has saved nothing yet: it starts at %1 tokens.").arg(window);
    }
    return QObject::tr("The window of %1 saves **%2** %3, %4; from %5 tokens on those layers stop growing.")
        .arg(layersText(layers), bytesText(saved), where, shareOfCache(share), window);
}

QString ofSequences(const KvGeometry& geometry) {
    return geometry.sequences > 1
               ? QObject::tr(" of %1 sequences together").arg(countText(static_cast<qint64>(geometry.sequences)))
               : QString();
}

} // namespace

KvSentences kvSentences(const KvSummary& facts, const std::optional<KvRoom>& room) {
    KvSentences words;
    if (facts.empty() || !facts.geometry) {
        return words;
    }
    const KvGeometry& geometry = *facts.geometry;
    const KvSample& last = facts.samples.back();
    const auto tokens = static_cast<double>(last.tokens);
    const QString at = QObject::tr("at %1 tokens").arg(countText(last.tokens));
    if (geometry.window() > 0) {
        const std::uint64_t without = kvWithWindow(geometry, 0).pages(tokens);
        words.first = bySaved(facts, last.total(), without, at);
        words.second =
            (facts.planned ? QObject::tr("Planned pages: %1 instead of %2.") : QObject::tr("Held %1 instead of %2."))
                .arg(bytesText(last.total()), bytesText(without));
    } else {
        std::uint64_t each = 0;
        for (const KvLayerGroup& group : geometry.groups) {
            each += group.bytesPerToken;
        }
        words.first = QObject::tr("Every token takes **%1**; the cache holds %2 %3.")
                          .arg(bytesText(each), bytesText(last.total()), at);
    }
    if (!facts.ending.isEmpty()) {
        words.second +=
            (words.second.isEmpty() ? QString() : QStringLiteral(" ")) + QObject::tr("The run %1.").arg(facts.ending);
    }
    bool byModel = false;
    const auto end = endOf(geometry, room, &byModel);
    if (!end) {
        return words;
    }
    const QString budget = room ? bytesText(room->budget) : QString();
    words.second +=
        (words.second.isEmpty() ? QString() : QStringLiteral(" ")) +
        (byModel ? QObject::tr("The model ends first, at %1 tokens%2.").arg(countText(*end), ofSequences(geometry))
                 : QObject::tr("Under the budget of %1 memory ends at %2 tokens%3.")
                       .arg(budget, countText(*end), ofSequences(geometry)));
    for (const char* dtype : {"fp8", "int8"}) {
        const auto smaller = kvInType(geometry, QString::fromLatin1(dtype));
        bool otherByModel = false;
        const auto other = smaller && !byModel ? endOf(*smaller, room, &otherByModel) : std::nullopt;
        if (other && *other > *end && elementBytes(geometry.dtype) > 1) {
            words.second +=
                QLatin1Char(' ') + (otherByModel ? QObject::tr("With an FP8 or INT8 cache the model ends first, at %1.")
                                                 : QObject::tr("With an FP8 or INT8 cache memory ends at %1."))
                                       .arg(countText(*other));
            break;
        }
    }
    return words;
}

KvSentences kvSentences(const KvSummary& facts, const KvPool& pool) {
    KvSentences words;
    const KvPoolBytes most = pool.bytesAt(pool.fullest());
    if (most.held() == 0) {
        return words;
    }
    const QString when = QObject::tr("at its fullest, %1").arg(instantText(pool.fullest()));
    words.first = facts.geometry && facts.geometry->window() > 0
                      ? bySaved(facts, most.held(), most.noWindow, when)
                      : QObject::tr("The cache holds **%1** %2.").arg(bytesText(most.held()), when);
    words.second = most.kept() > 0 && most.kept() <= most.held()
                       ? QObject::tr("Its pages hold %1 of tokens; %2 are page rounding.")
                             .arg(bytesText(most.kept()), bytesText(most.held() - most.kept()))
                       : QString();
    return words;
}

} // namespace vitrine::ui
