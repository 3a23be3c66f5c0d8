// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/memory_lookup.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/units.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::profiler {

namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\n\r\f\v";
    const std::size_t first = text.find_first_not_of(kBlanks);
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<std::uint64_t> sizeIn(std::string_view text) {
    try {
        return base::parseBytes(std::string(trimmed(text)), "size");
    } catch (const base::Error&) {
        return std::nullopt;
    }
}

bool beginsAddress(std::string_view text) {
    return text.size() >= 2 && text[0] == '0' && lower(text[1]) == 'x';
}

/// "0x0006_8e00_0000": hexadecimal, with low lines anywhere.
std::optional<std::uint64_t> addressIn(std::string_view text) {
    std::string digits(text);
    std::erase(digits, '_');
    if (!beginsAddress(digits)) {
        return std::nullopt;
    }
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data() + 2, end, value, 16);
    return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

} // namespace

std::optional<AllocationQuery> AllocationQuery::ofAddress(std::string_view typed) {
    const std::size_t dots = typed.find("..");
    const auto low = addressIn(typed.substr(0, dots));
    if (!beginsAddress(typed) || !low) {
        return std::nullopt;
    }
    AllocationQuery query;
    query.kind_ = Kind::Address;
    query.low_ = *low;
    query.high_ = dots == std::string_view::npos ? *low + 1 : addressIn(typed.substr(dots + 2)).value_or(UINT64_MAX);
    return query;
}

std::optional<AllocationQuery> AllocationQuery::ofSize(std::string_view typed) {
    AllocationQuery query;
    query.kind_ = Kind::Size;
    if (typed.front() == '>' || typed.front() == '<') {
        const bool orEqual = typed.size() > 1 && typed[1] == '=';
        const auto size = sizeIn(typed.substr(orEqual ? 2 : 1));
        if (!size) {
            return std::nullopt;
        }
        if (typed.front() == '>') {
            query.low_ = *size + (orEqual ? 0 : 1);
        } else {
            query.high_ = *size - (orEqual || *size == 0 ? 0 : 1);
        }
        return query;
    }
    const std::size_t dots = typed.find("..");
    if (dots == 0 || dots == std::string_view::npos) {
        return std::nullopt;
    }
    const auto low = sizeIn(typed.substr(0, dots)), high = sizeIn(typed.substr(dots + 2));
    if (!low || !high) {
        return std::nullopt;
    }
    query.low_ = *low;
    query.high_ = *high;
    return query;
}

AllocationQuery AllocationQuery::parse(std::string_view typedText) {
    const std::string_view typed = trimmed(typedText);
    if (typed.empty()) {
        return {};
    }
    if (const auto address = ofAddress(typed)) {
        return *address;
    }
    if (const auto size = ofSize(typed)) {
        return *size;
    }
    AllocationQuery query;
    query.kind_ = Kind::Text;
    query.text_ = std::string(typed);
    std::ranges::transform(query.text_, query.text_.begin(), lower);
    return query;
}

bool AllocationQuery::matches(const RunTimeline& timeline, const AllocationRow& row) const {
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
        return std::search(hay.begin(), hay.end(), text_.begin(), text_.end(),
                           [](char a, char b) { return lower(a) == b; }) != hay.end();
    };
    return holds(timeline.text(row.name)) || holds(base::categoryName(row.category));
}

FoundAllocations findAllocations(const RunTimeline& timeline, const AllocationQuery& query, std::size_t limit) {
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

std::optional<std::uint64_t> budgetAt(const RunTimeline& timeline, base::TimeNs time) {
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

} // namespace vitrine::profiler
