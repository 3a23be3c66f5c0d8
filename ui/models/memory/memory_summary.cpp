// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/memory_summary.h"

#include <QObject>
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/units.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

std::uint64_t totalBytes(const base::CategoryBytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

namespace {

std::optional<std::uint64_t> sizeIn(const QString& text) {
    try {
        return base::parseBytes(text.trimmed().toStdString(), "size");
    } catch (const base::Error&) {
        return std::nullopt;
    }
}

std::optional<std::uint64_t> addressIn(QString text) {
    text.remove(QLatin1Char('_'));
    if (!text.startsWith(QLatin1String("0x"), Qt::CaseInsensitive)) {
        return std::nullopt;
    }
    bool ok = false;
    const std::uint64_t value = text.mid(2).toULongLong(&ok, 16);
    return ok ? std::optional(value) : std::nullopt;
}

} // namespace

AllocationQuery AllocationQuery::parse(const QString& typedText) {
    AllocationQuery query;
    const QString typed = typedText.trimmed();
    if (typed.isEmpty()) {
        return query;
    }
    const qsizetype dots = typed.indexOf(QLatin1String(".."));
    if (typed.startsWith(QLatin1String("0x"), Qt::CaseInsensitive)) {
        const auto low = addressIn(dots < 0 ? typed : typed.left(dots));
        const QString upper = dots < 0 ? QString() : typed.mid(dots + 2);
        if (low) {
            query.kind_ = Kind::Address;
            query.low_ = *low;
            query.high_ = dots < 0 ? *low + 1 : upper.isEmpty() ? UINT64_MAX : addressIn(upper).value_or(UINT64_MAX);
            return query;
        }
    }
    if (typed.startsWith(QLatin1Char('>')) || typed.startsWith(QLatin1Char('<'))) {
        const bool orEqual = typed.size() > 1 && typed[1] == QLatin1Char('=');
        if (const auto size = sizeIn(typed.mid(orEqual ? 2 : 1))) {
            query.kind_ = Kind::Size;
            if (typed.startsWith(QLatin1Char('>'))) {
                query.low_ = *size + (orEqual ? 0 : 1);
            } else {
                query.high_ = *size - (orEqual || *size == 0 ? 0 : 1);
            }
            return query;
        }
    }
    if (dots > 0) {
        const auto low = sizeIn(typed.left(dots)), high = sizeIn(typed.mid(dots + 2));
        if (low && high) {
            query.kind_ = Kind::Size;
            query.low_ = *low;
            query.high_ = *high;
            return query;
        }
    }
    query.kind_ = Kind::Text;
    query.text_ = typed.toLower().toStdString();
    return query;
}

bool AllocationQuery::matches(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row) const {
    switch (kind_) {
    case Kind::None:
        return false;
    case Kind::Size:
        return row.bytes >= low_ && row.bytes <= high_;
    case Kind::Address:
        return row.address + row.bytes > low_ && row.address < high_;
    case Kind::Text:
        break;
    }
    const auto holds = [this](std::string_view hay) {
        return std::search(hay.begin(), hay.end(), text_.begin(), text_.end(), [](char a, char b) {
                   return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
               }) != hay.end();
    };
    return holds(timeline.text(row.name)) || holds(base::categoryName(row.category));
}

FoundAllocations findAllocations(const profiler::RunTimeline& timeline, const AllocationQuery& query,
                                 std::size_t limit) {
    FoundAllocations found;
    if (query.empty()) {
        return found;
    }
    const auto rows = timeline.memory().allocations();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (query.matches(timeline, rows[i])) {
            ++found.total;
            if (found.rows.size() < limit) {
                found.rows.push_back(i);
            }
        }
    }
    return found;
}

std::optional<std::uint64_t> budgetAt(const profiler::RunTimeline& timeline, base::TimeNs time) {
    std::optional<std::uint64_t> budget;
    for (const auto& [when, value] : timeline.counters().samples("budget_bytes")) {
        if ((when <= time || !budget) && value > 0) {
            budget = static_cast<std::uint64_t>(value);
        }
    }
    if (!budget && !timeline.memory().outOfMemory().empty() && timeline.memory().outOfMemory().front().budget > 0) {
        budget = timeline.memory().outOfMemory().front().budget;
    }
    return budget;
}

const profiler::ScopeRow* scopeAt(const profiler::RunTimeline& timeline, base::TimeNs time, base::ScopeKind kind) {
    const auto scopes = timeline.scopes().all();
    auto next = static_cast<std::size_t>(
        std::ranges::upper_bound(scopes, time, {}, [](const profiler::ScopeRow& row) { return row.begin; }) -
        scopes.begin());
    // Scopes nest: the one that encloses the instant is among the last that began, but layers and ops lie between.
    for (std::size_t looked = 0; next > 0 && looked < 100'000; ++looked) {
        const profiler::ScopeRow row = scopes[--next];
        if (row.kind == kind && (row.end < 0 || row.end >= time)) {
            return timeline.scopes().find(row.id);
        }
    }
    return nullptr;
}

QString scopeTitle(const profiler::RunTimeline& timeline, const profiler::ScopeRow& scope, bool withTokens) {
    QString title = textOf(timeline.text(scope.name));
    if (title.isEmpty()) {
        title = scope.kind == base::ScopeKind::Step ? QObject::tr("step") : QObject::tr("scope");
    }
    if (scope.index >= 0) {
        title += QLatin1Char(' ') + QString::number(scope.index);
    }
    if (withTokens && scope.tokens > 0) {
        title = scope.tokens == 1 ? QObject::tr("%1, 1 token").arg(title)
                                  : QObject::tr("%1, %2 tokens").arg(title, countText(scope.tokens));
    }
    return title;
}

} // namespace vitrine::ui
