// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A timeline held in plain arrays and answered by brute force: slow, obvious, and therefore what tests compare with.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profiler/timeline/memory_timeline.h"

namespace vitrine::test {

inline constexpr std::uint64_t kMiB = 1ULL << 20;
inline constexpr std::uint64_t kGiB = 1ULL << 30;

inline base::TimeNs seconds(double s) {
    return static_cast<base::TimeNs>(std::llround(s * 1e9));
}

class FakeTimeline final : public profiler::MemoryTimeline {
    template <class Row> class Rows final : public profiler::RowSource<Row> {
    public:
        std::size_t rowCount() const override { return rows.size(); }
        Row rowAt(std::size_t index) const override { return rows[index]; }
        std::vector<Row> rows;
    };

public:
    std::uint32_t intern(const std::string& text) {
        for (std::uint32_t i = 0; i < texts_.size(); ++i) {
            if (texts_[i] == text) {
                return i;
            }
        }
        texts_.push_back(text);
        return static_cast<std::uint32_t>(texts_.size() - 1);
    }

    std::uint64_t addScope(base::ScopeKind kind, const std::string& name, double begin, double end,
                           std::uint64_t parent = 0, std::int32_t index = -1, std::int64_t tokens = 0) {
        profiler::ScopeRow row;
        row.id = scopes_.size() + 1;
        row.parent = parent;
        row.kind = kind;
        row.name = intern(name);
        row.index = index;
        row.tokens = tokens;
        row.begin = seconds(begin);
        row.end = end < 0 ? -1 : seconds(end);
        scopes_.push_back(row);
        if (kind == base::ScopeKind::Step || kind == base::ScopeKind::Phase) {
            (kind == base::ScopeKind::Step ? stepSource_ : phaseSource_).rows.push_back(row);
        }
        return row.id;
    }

    /// freed < 0: alive at the end.
    std::uint64_t alloc(base::MemoryCategory category, const std::string& name, double bytes, double born, double freed,
                        std::uint64_t scope = 0, std::vector<std::int64_t> shape = {}) {
        profiler::AllocationRow row;
        row.id = rows_.size() + 1;
        row.bytes = static_cast<std::uint64_t>(std::llround(bytes));
        row.born = seconds(born);
        row.freed = freed < 0 ? -1 : seconds(freed);
        row.scope = scope;
        row.name = intern(name);
        row.category = category;
        row.dtype = 1;
        row.rank = static_cast<std::uint8_t>(std::min<std::size_t>(shape.size(), base::kMaxTraceRank));
        std::copy_n(shape.begin(), row.rank, row.shape.begin());
        rows_.push_back(row);
        return row.id;
    }

    void addOom(const base::OutOfMemoryEvent& event) { oom_.push_back(event); }
    void addCounter(const std::string& name, double time, double value) {
        counters_[name].emplace_back(seconds(time), value);
    }
    void addSpan(const std::string& lane, const std::string& name, double begin, double end, std::uint64_t bytes) {
        base::SpanEvent span;
        span.begin = seconds(begin);
        span.end = seconds(end);
        span.lane.value = intern(lane);
        span.name.value = intern(name);
        span.bytes = bytes;
        spans_.push_back(span);
    }

    /// Sorts, gives first-fit addresses and builds the list of instants. Call once after everything was added.
    void finish(double end) {
        end_ = seconds(end);
        std::stable_sort(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) { return a.born < b.born; });
        placeAddresses();
        for (const auto& row : rows_) {
            events_.push_back({row.born, &row, true});
            if (row.freed >= 0) {
                events_.push_back({row.freed, &row, false});
            }
        }
        std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
            return a.time != b.time ? a.time < b.time : a.birth < b.birth; // frees first
        });
        base::CategoryBytes now{};
        for (const Event& event : events_) {
            auto& bytes = now[static_cast<std::size_t>(event.row->category)];
            event.birth ? bytes += event.row->bytes : bytes -= event.row->bytes;
            after_.push_back(now);
        }
    }

    base::TimeNs begin() const override { return 0; }
    base::TimeNs end() const override { return end_; }
    std::uint64_t events() const override { return events_.size(); }

    std::vector<profiler::MemoryColumn> query(base::TimeNs begin, base::TimeNs end, int columns) const override {
        std::vector<profiler::MemoryColumn> out(static_cast<std::size_t>(std::max(columns, 0)));
        const long double step = static_cast<long double>(end - begin) / std::max(columns, 1);
        for (int i = 0; i < columns; ++i) {
            const auto from = begin + static_cast<base::TimeNs>(step * i);
            const auto to = i + 1 == columns ? end : begin + static_cast<base::TimeNs>(step * (i + 1));
            out[static_cast<std::size_t>(i)] = column(firstAfter(from), firstAfter(to), from);
        }
        return out;
    }

    std::vector<profiler::MemoryColumn> queryEvents(std::uint64_t first, std::uint64_t last,
                                                    int columns) const override {
        std::vector<profiler::MemoryColumn> out(static_cast<std::size_t>(std::max(columns, 0)));
        last = std::min<std::uint64_t>(last, events_.size());
        first = std::min(first, last);
        for (int i = 0; i < columns; ++i) {
            const std::uint64_t a =
                first + (last - first) * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(columns);
            const std::uint64_t b =
                first + (last - first) * static_cast<std::uint64_t>(i + 1) / static_cast<std::uint64_t>(columns);
            out[static_cast<std::size_t>(i)] = column(a, b, a < events_.size() ? events_[a].time : end_);
        }
        return out;
    }

    base::CategoryBytes at(base::TimeNs time) const override {
        const std::size_t count = firstAfter(time + 1);
        return count == 0 ? base::CategoryBytes{} : after_[count - 1];
    }

    profiler::MemoryColumn peak(base::TimeNs begin, base::TimeNs end) const override {
        return column(firstAfter(begin), firstAfter(end), begin);
    }

    std::vector<base::TimeNs> peaks(std::size_t limit) const override {
        std::vector<std::pair<std::uint64_t, base::TimeNs>> found;
        for (std::size_t i = 0; i < after_.size(); ++i) {
            const std::uint64_t here = total(after_[i]);
            const bool rises = i == 0 || here > total(after_[i - 1]);
            const bool falls = i + 1 == after_.size() || total(after_[i + 1]) < here;
            if (rises && falls) {
                found.emplace_back(here, events_[i].time);
            }
        }
        std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        std::vector<base::TimeNs> out;
        for (std::size_t i = 0; i < std::min(limit, found.size()); ++i) {
            out.push_back(found[i].second);
        }
        return out;
    }

    profiler::LazyRows<profiler::AllocationRow> allocations() const override {
        return profiler::LazyRows<profiler::AllocationRow>(allocationSource_);
    }

    std::optional<std::size_t> findAllocation(std::uint64_t id) const override {
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i].id == id) {
                return i;
            }
        }
        return std::nullopt;
    }

    profiler::RangeTotals totals(base::TimeNs begin, base::TimeNs end) const override {
        profiler::RangeTotals sums;
        for (std::size_t i = firstAfter(begin); i < firstAfter(end); ++i) {
            events_[i].birth ? ++sums.births : ++sums.deaths;
        }
        base::TimeNs from = begin;
        for (std::size_t i = firstAfter(begin); i <= firstAfter(end); ++i) {
            const base::TimeNs to = i < firstAfter(end) ? events_[i].time : end;
            sums.byteNs += i > 0 ? static_cast<double>(total(after_[i - 1])) * static_cast<double>(to - from) : 0;
            from = to;
        }
        return sums;
    }
    base::CategoryBytes atEvent(std::uint64_t count) const override {
        return count == 0 ? base::CategoryBytes{} : after_[std::min<std::size_t>(count, after_.size()) - 1];
    }
    std::vector<std::size_t> aliveAtEvent(std::uint64_t count) const override {
        return count == 0 ? std::vector<std::size_t>{} : aliveAt(eventTime(count - 1));
    }
    std::uint64_t eventsBeforeOutOfMemory(std::size_t index) const override { return firstAfter(oom_[index].time + 1); }

    base::TimeNs eventTime(std::uint64_t index) const override {
        return events_.empty() ? 0 : events_[std::min<std::size_t>(index, events_.size() - 1)].time;
    }
    std::uint64_t eventsBefore(base::TimeNs time) const override { return firstAfter(time); }

    std::vector<profiler::MemoryColumn> hostQuery(base::TimeNs, base::TimeNs, int columns) const override {
        return std::vector<profiler::MemoryColumn>(static_cast<std::size_t>(std::max(columns, 0)));
    }
    base::CategoryBytes hostAt(base::TimeNs) const override { return {}; }

    std::vector<std::size_t> aliveAt(base::TimeNs time) const override {
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i].born <= time && (rows_[i].freed < 0 || rows_[i].freed > time)) {
                out.push_back(i);
            }
        }
        std::stable_sort(out.begin(), out.end(),
                         [this](std::size_t a, std::size_t b) { return rows_[a].bytes > rows_[b].bytes; });
        return out;
    }

    std::vector<profiler::AllocationShape> shapes(base::TimeNs begin, base::TimeNs end, double nsPerPixel,
                                                  double bytesPerPixel, bool byAddress) const override {
        std::vector<profiler::AllocationShape> out;
        std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> small; // by coarse cell
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const auto& row = rows_[i];
            const base::TimeNs freed = row.freed < 0 ? end_ : row.freed;
            if (freed <= begin || row.born >= end) {
                continue;
            }
            const std::uint64_t low = byAddress ? row.address : stackedAddress(i);
            profiler::AllocationShape shape{low, low + row.bytes, row.born, freed, 1, i};
            if (static_cast<double>(freed - row.born) >= nsPerPixel &&
                static_cast<double>(row.bytes) >= bytesPerPixel) {
                out.push_back(shape);
                continue;
            }
            const auto cell =
                std::pair{static_cast<std::int64_t>(static_cast<double>(row.born) / std::max(1.0, nsPerPixel * 8)),
                          static_cast<std::int64_t>(static_cast<double>(low) / std::max(1.0, bytesPerPixel * 3))};
            const auto [found, fresh] = small.try_emplace(cell, out.size());
            if (fresh) {
                out.push_back(shape);
                continue;
            }
            auto& merged = out[found->second];
            if (row.bytes > rows_[merged.row].bytes) {
                merged.row = i;
            }
            ++merged.count;
            merged.addressBegin = std::min(merged.addressBegin, shape.addressBegin);
            merged.addressEnd = std::max(merged.addressEnd, shape.addressEnd);
            merged.begin = std::min(merged.begin, shape.begin);
            merged.end = std::max(merged.end, shape.end);
        }
        return out;
    }

    std::uint64_t stackedAddress(std::size_t row) const override { return rows_[row].address; }
    std::uint64_t compactAddress(std::uint64_t address) const override { return address; }
    std::uint64_t extent(bool) const override {
        std::uint64_t end = 0;
        for (const auto& row : rows_) {
            end = std::max(end, row.address + row.bytes);
        }
        return end;
    }
    profiler::LazyRows<profiler::ScopeRow> steps() const override {
        return profiler::LazyRows<profiler::ScopeRow>(stepSource_);
    }
    profiler::LazyRows<profiler::ScopeRow> phases() const override {
        return profiler::LazyRows<profiler::ScopeRow>(phaseSource_);
    }
    profiler::LazyRows<profiler::ScopeRow> scopes() const override {
        return profiler::LazyRows<profiler::ScopeRow>(scopeSource_);
    }

    const profiler::ScopeRow* scope(std::uint64_t id) const override {
        ++scopesLookedUp_;
        return id == 0 || id > scopes_.size() ? nullptr : &scopes_[id - 1];
    }
    std::optional<profiler::ScopeRow> findScope(std::uint64_t id) const override {
        const profiler::ScopeRow* row = scope(id);
        return row != nullptr ? std::optional(*row) : std::nullopt;
    }
    std::uint64_t scopesLookedUp() const { return scopesLookedUp_; } ///< by id, since the timeline was made

    std::string scopePath(std::uint64_t id) const override {
        const profiler::ScopeRow* row = scope(id);
        if (row == nullptr) {
            return {};
        }
        const std::string own = texts_[row->name] + (row->index >= 0 ? " " + std::to_string(row->index) : "");
        const std::string above = scopePath(row->parent);
        return above.empty() ? own : above + " / " + own;
    }

    std::string_view text(std::uint32_t name) const override {
        return name < texts_.size() ? std::string_view(texts_[name]) : std::string_view();
    }

    std::span<const base::OutOfMemoryEvent> outOfMemory() const override { return oom_; }

    std::vector<std::pair<base::TimeNs, double>> counter(std::string_view name) const override {
        const auto found = counters_.find(std::string(name));
        return found == counters_.end() ? std::vector<std::pair<base::TimeNs, double>>{} : found->second;
    }

    std::vector<std::string> counters() const override {
        std::vector<std::string> names;
        for (const auto& [name, values] : counters_) {
            names.push_back(name);
        }
        return names;
    }

    std::span<const base::SpanEvent> spans() const override { return spans_; }
    std::span<const base::TokenEvent> tokens() const override { return {}; }

    static std::uint64_t total(const base::CategoryBytes& bytes) {
        std::uint64_t sum = 0;
        for (const std::uint64_t b : bytes) {
            sum += b;
        }
        return sum;
    }

private:
    struct Event {
        base::TimeNs time;
        const profiler::AllocationRow* row;
        bool birth;
    };

    std::size_t firstAfter(base::TimeNs time) const {
        return static_cast<std::size_t>(std::lower_bound(events_.begin(), events_.end(), time,
                                                         [](const Event& e, base::TimeNs t) { return e.time < t; }) -
                                        events_.begin());
    }

    /// Events [a, b); `from`: where the column begins, with what was held before.
    profiler::MemoryColumn column(std::size_t a, std::size_t b, base::TimeNs from) const {
        profiler::MemoryColumn out;
        out.atMax = a == 0 ? base::CategoryBytes{} : after_[a - 1];
        out.minTotal = out.maxTotal = total(out.atMax);
        out.maxTime = from;
        out.events = b - a;
        for (std::size_t i = a; i < b; ++i) {
            // Only the state after all events of one instant counts.
            if (i + 1 < events_.size() && events_[i + 1].time == events_[i].time) {
                continue;
            }
            const std::uint64_t now = total(after_[i]);
            out.minTotal = std::min(out.minTotal, now);
            if (now > out.maxTotal) {
                out.maxTotal = now;
                out.maxTime = events_[i].time;
                out.atMax = after_[i];
            }
        }
        return out;
    }

    void placeAddresses() {
        std::vector<profiler::AllocationRow*> live;
        for (auto& row : rows_) {
            live.erase(std::remove_if(live.begin(), live.end(),
                                      [&](const auto* r) { return r->freed >= 0 && r->freed <= row.born; }),
                       live.end());
            std::sort(live.begin(), live.end(), [](const auto* a, const auto* b) { return a->address < b->address; });
            std::uint64_t place = 0;
            for (const auto* other : live) {
                if (other->address - place >= row.bytes && other->address >= place) {
                    break;
                }
                place = std::max(place, other->address + other->bytes);
            }
            row.address = place;
            live.push_back(&row);
        }
    }

    base::TimeNs end_ = 0;
    std::vector<std::string> texts_{""};
    Rows<profiler::AllocationRow> allocationSource_;
    Rows<profiler::ScopeRow> scopeSource_, stepSource_, phaseSource_;
    std::vector<profiler::AllocationRow>& rows_ = allocationSource_.rows;
    std::vector<profiler::ScopeRow>& scopes_ = scopeSource_.rows;
    mutable std::atomic<std::uint64_t> scopesLookedUp_ = 0;
    std::vector<Event> events_;
    std::vector<base::CategoryBytes> after_;
    std::vector<base::OutOfMemoryEvent> oom_;
    std::vector<base::SpanEvent> spans_;
    std::map<std::string, std::vector<std::pair<base::TimeNs, double>>> counters_;
};

} // namespace vitrine::test
