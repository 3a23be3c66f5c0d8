// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/load/load_plots.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("LoadView", text);
}

/// Spans of one lane as few bars: gaps of less than a hundredth of the load are closed.
std::vector<SpanRow::Span> bars(const LoadSide& side, const QString& lane, const QString& label) {
    std::vector<TimeRange> ranges;
    for (std::size_t i = 0; i < side.spans.size(); ++i) {
        if (side.spanLanes[i] == lane) {
            ranges.push_back({side.spans[i].begin, side.spans[i].end});
        }
    }
    std::sort(ranges.begin(), ranges.end(), [](const TimeRange& a, const TimeRange& b) { return a.begin < b.begin; });
    const base::TimeNs gap = side.length / 60;
    std::vector<SpanRow::Span> out;
    for (const TimeRange& range : ranges) {
        if (!out.empty() && range.begin - out.back().range.end <= gap) {
            out.back().range.end = std::max(out.back().range.end, range.end);
        } else {
            out.push_back({range, {}, 0});
        }
    }
    const auto longest = std::max_element(
        out.begin(), out.end(), [](const auto& a, const auto& b) { return a.range.length() < b.range.length(); });
    if (longest != out.end()) {
        longest->label = label;
    }
    return out;
}

} // namespace

std::vector<SpanRow> stageRows(const LoadSide& side, bool withCopy) {
    std::vector<SpanRow> rows;
    const auto rate = [&](const char* name) {
        const profiler::LoadStage* stage = side.stage(name);
        const QString text = stage != nullptr ? rateText(stage->bytesPerSecond) : QString();
        return side.predicted && !text.isEmpty() ? tr("%1 predicted").arg(text) : text;
    };
    const bool filled = side.stage("Fill") != nullptr;
    const QString source = filled ? QStringLiteral("Fill") : QStringLiteral("Read");
    rows.push_back({filled ? tr("Fill") : tr("Read"), bars(side, source, rate(filled ? "Fill" : "Read"))});
    if (withCopy) {
        rows.push_back({tr("Copy"), bars(side, QStringLiteral("Copy"), rate("Copy"))});
    }
    if (side.stage("Expand") != nullptr) {
        rows.push_back({tr("Expand"), bars(side, QStringLiteral("Expand"),
                                           tr("packed weights to BF16, written at %1").arg(rate("Expand")))});
    } else {
        base::TimeNs begin = side.length;
        for (const profiler::LoadStage& stage : side.stages) {
            begin = std::min(begin, stage.begin);
        }
        rows.push_back({tr("Lay out"), {{{begin, side.length}, tr("in place, no expansion"), 0}}});
    }
    return rows;
}

std::vector<LegendItem> loadLegend(const LoadPair& pair, LoadContent content) {
    std::vector<LegendItem> items;
    if (content == LoadContent::Lines) {
        items.push_back({pair.a ? pair.a->title : QString(), LegendItem::Mark::BadgeA, {}});
        if (pair.b) {
            items.push_back({pair.b->title, LegendItem::Mark::BadgeB, {}});
        }
        if (pair.c) {
            items.push_back({pair.c->title, LegendItem::Mark::BadgeC, {}});
        }
    } else if (content == LoadContent::Parts) {
        for (const LoadShare part : {LoadShare::Experts, LoadShare::Mlp, LoadShare::Embedding, LoadShare::Attention,
                                     LoadShare::Small, LoadShare::Workspace, LoadShare::Untracked}) {
            bool present = false;
            for (const std::optional<LoadSide>* side : {&pair.a, &pair.b, &pair.c}) {
                present = present || (*side && std::any_of((*side)->steps.begin(), (*side)->steps.end(),
                                                           [&](const LoadPoint& step) {
                                                               return step.parts[static_cast<std::size_t>(part)] > 0;
                                                           }));
            }
            if (present) {
                const StackLayer layer = loadPartLayer(part);
                items.push_back({layer.name, LegendItem::Mark::Swatch,
                                 [layer](const ThemeTokens& t) { return layerStyle(layer, t); }});
            }
        }
    } else {
        for (const auto category : {base::MemoryCategory::Weights, base::MemoryCategory::Workspace,
                                    base::MemoryCategory::Untracked, base::MemoryCategory::Other}) {
            items.push_back({textOf(base::categoryName(category)), LegendItem::Mark::Swatch,
                             [category](const ThemeTokens& t) { return t.category(category); }});
        }
    }
    return items;
}

std::vector<BarGroup> loadBars(const LoadPair& pair, const ThemeTokens& t) {
    std::vector<BarGroup> groups;
    for (const LoadShare part :
         {LoadShare::Experts, LoadShare::Mlp, LoadShare::Embedding, LoadShare::Attention, LoadShare::Small}) {
        const auto i = static_cast<std::size_t>(part);
        const std::uint64_t a = pair.a->resident[i], b = pair.b ? pair.b->resident[i] : 0;
        if (a == 0 && b == 0) {
            continue;
        }
        BarGroup group;
        group.name = part == LoadShare::Embedding ? tr("embed, head")
                     : part == LoadShare::Small   ? tr("other")
                                                  : loadPartName(part);
        const CategoryStyle style = layerStyle(loadPartLayer(part), t);
        group.rows.push_back({static_cast<double>(a), tr("A %1").arg(bytesText(a)), style, QLatin1Char('A'), false});
        if (pair.b) {
            group.rows.push_back(
                {static_cast<double>(b), tr("B %1").arg(bytesText(b)), style, QLatin1Char('B'), false});
            const double larger = static_cast<double>(std::max(a, b)), smaller = static_cast<double>(std::min(a, b));
            group.strong = smaller > 0 && larger / smaller > 1.0005;
            group.fact = a == b        ? QStringLiteral("=")
                         : smaller > 0 ? ratioText(static_cast<double>(b) / static_cast<double>(a))
                                       : unknownText();
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

QString loadTimeText(const LoadSide& side) {
    const QString text = durationText(static_cast<base::TimeNs>(std::llround(side.seconds * 1e9)));
    return side.predicted ? tr("%1 predicted").arg(text) : text;
}

QString sideSummary(const LoadSide& side) {
    return tr("%1, resident %2, peak %3")
        .arg(loadTimeText(side), bytesText(side.residentWeights()), bytesText(side.peak));
}

FlatTreePtr withHeads(const FlatTreePtr& table, const FlatTreePtr& heads) {
    if (!table || !heads) {
        return table;
    }
    auto out = std::make_shared<FlatTree>(*table);
    for (std::size_t i = 1; i < std::min(out->columns.size(), heads->columns.size()); ++i) {
        out->columns[i].title = heads->columns[i].title;
    }
    return out;
}

} // namespace vitrine::ui
