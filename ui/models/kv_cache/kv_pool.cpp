// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kv_cache/kv_pool.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "profiler/analysis/kv_pool_steps.h"
#include "profiler/timeline/page_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/token_facet.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using base::PageState;
using base::RequestChange;

constexpr std::int32_t kMostPages = 1 << 22;
constexpr std::int32_t kMostGroups = 16;
constexpr std::size_t kCheckEvery = 4096; ///< events between two whole states at least

std::uint64_t wholeBytes(std::optional<double> value) {
    return value && *value > 0 ? static_cast<std::uint64_t>(std::llround(*value)) : 0;
}

/// Groups in the order of the events' numbers, which is that of the run's metrics.
std::vector<KvPoolGroup> groupsOf(const sessions::RunInfo& run) {
    std::vector<KvPoolGroup> groups;
    const nlohmann::json metrics = base::parsedObject(run.metricsJson);
    const nlohmann::json& rows = engine::rowsOf(metrics, engine::result::kKvCacheGroups);
    for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), kMostGroups); ++i) {
        KvPoolGroup group;
        const nlohmann::json& row = rows[i];
        if (row.is_object()) {
            group.name = textOf(engine::textOf(row, engine::result::kName));
            group.sliding = engine::numberOf(row, engine::result::kWindow).value_or(0) > 0;
            group.layers = engine::rowsOf(row, engine::result::kLayers).size();
            group.pageTokens =
                std::llround(std::clamp(engine::numberOf(row, engine::result::kPageTokens).value_or(0), 0.0, 1e9));
            group.pageBytes = static_cast<std::uint64_t>(group.pageTokens) *
                              engine::countOf(row, engine::result::kBytesPerToken).value_or(0);
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

/// Tokens that a request has in the cache, and those of it that sliding layers keep.
class HeldTokens {
public:
    HeldTokens(std::int64_t window, BatchCurve& full, BatchCurve& sliding)
        : window_(window), full_(full), sliding_(sliding) {}

    void set(std::int32_t request, base::TimeNs time, std::int64_t tokens) {
        std::int64_t& held = held_[request];
        fullSum_ += tokens - held;
        slidingSum_ += kept(tokens) - kept(held);
        held = tokens;
        full_.add(time, static_cast<double>(fullSum_));
        sliding_.add(time, static_cast<double>(slidingSum_));
    }

private:
    std::int64_t kept(std::int64_t tokens) const { return window_ > 1 ? std::min(tokens, window_ - 1) : tokens; }
    std::int64_t window_;
    BatchCurve &full_, &sliding_;
    std::map<std::int32_t, std::int64_t> held_;
    std::int64_t fullSum_ = 0, slidingSum_ = 0;
};

/// Which request a sequence of the cache works for; sequences of requests that are gone are used again. Times ascend.
class Owners {
public:
    Owners(std::span<const base::RequestEvent> requests, const profiler::RunTimeline& timeline)
        : requests_(requests), timeline_(timeline) {}

    std::int32_t at(const base::KvPageEvent& page) {
        for (; next_ < requests_.size() && requests_[next_].time <= page.time; ++next_) {
            const base::RequestEvent& event = requests_[next_];
            if (event.phase != RequestChange::Admitted && event.phase != RequestChange::Resumed) {
                continue;
            }
            bool known = event.sequence >= 0;
            // Sessions of earlier versions have the sequence as the text of the reason.
            const int sequence = known ? event.sequence : textOf(timeline_.text(event.reason.value)).toInt(&known);
            if (known) {
                known_[sequence] = event.request;
            }
        }
        const auto found = page.state == PageState::Used ? known_.find(page.owner) : known_.end();
        return found == known_.end() ? -1 : found->second;
    }

private:
    std::span<const base::RequestEvent> requests_;
    const profiler::RunTimeline& timeline_;
    std::size_t next_ = 0;
    std::unordered_map<std::int32_t, std::int32_t> known_;
};

} // namespace

double KvPoolBytes::waste() const {
    const auto all = static_cast<double>(held());
    return all > 0 ? std::clamp(1 - static_cast<double>(kept()) / all, 0.0, 1.0) : 0;
}

std::shared_ptr<const KvPool> KvPool::make(const sessions::RunInfo& run, const profiler::RunTimeline& timeline) {
    if (timeline.pages().all().empty()) {
        return nullptr;
    }
    auto pool = std::make_shared<KvPool>();
    pool->groups_ = groupsOf(run);
    if (const auto geometry = kvGeometry(run)) {
        pool->window_ = geometry->window();
        for (const KvLayerGroup& group : geometry->groups) {
            (group.sliding() ? pool->slidingToken_ : pool->fullToken_) += group.bytesPerToken;
        }
    }
    pool->end_ = timeline.end();
    for (const base::BatchStepEvent& step : timeline.requests().steps()) {
        const std::int64_t pages = step.usedPages + step.cachedPages + step.freePages;
        pool->poolPages_ = std::max(pool->poolPages_, pages);
        pool->backed_.add(step.begin, static_cast<double>(pages));
    }
    pool->backed_.setEnd(pool->end_);
    pool->backed_.finish();
    pool->limitPages_ = std::llround(
        std::clamp(engine::numberOf(base::parsedObject(run.metricsJson), engine::result::kKvPoolLimitPages).value_or(0),
                   0.0, 1e15));
    const profiler::KvPoolSteps steps(timeline);
    pool->takePages(timeline, steps);
    if (pool->events_.empty()) {
        return nullptr;
    }
    pool->takeKept(timeline, steps);
    pool->makeWaste();
    pool->makeMoments();
    return pool;
}

void KvPool::takePages(const profiler::RunTimeline& timeline, const profiler::KvPoolSteps& steps) {
    for (const base::KvPageEvent& event : timeline.pages().all()) {
        if (event.group < 0 || event.group >= kMostGroups || event.page < 0 || event.page >= kMostPages) {
            continue;
        }
        const auto group = static_cast<std::size_t>(event.group);
        while (groups_.size() <= group) {
            groups_.push_back({QObject::tr("group %1").arg(groups_.size()), false, 0, 0, 0});
        }
        groups_[group].pages = std::max(groups_[group].pages, static_cast<std::size_t>(event.page) + 1);
        events_.push_back(event);
        events_.back().time = steps.ofPages(event.time, event.state == PageState::Used);
    }
    std::ranges::stable_sort(events_, {}, &base::KvPageEvent::time);
    begin_ = events_.empty() ? 0 : events_.front().time;
    std::vector<std::vector<KvPoolPanel>> now;
    now.reserve(groups_.size());
    checkEvery_ = kCheckEvery;
    for (const KvPoolGroup& group : groups_) {
        now.emplace_back(group.pages);
        checkEvery_ = std::max(checkEvery_, group.pages); // whole states take no more than the events between them
    }
    Owners who(timeline.requests().events(), timeline);
    requests_.reserve(events_.size());
    double used = 0, shared = 0, cached = 0, most = -1;
    std::vector<double> usedOf(groups_.size());
    for (std::size_t i = 0; i < events_.size(); ++i) {
        if (i % checkEvery_ == 0) {
            checks_.push_back({i, now});
        }
        const base::KvPageEvent& event = events_[i];
        const auto group = static_cast<std::size_t>(event.group);
        KvPoolPanel& page = now[group][static_cast<std::size_t>(event.page)];
        const auto count = [&](double sign) {
            used += page.state == PageState::Used ? sign : 0;
            usedOf[group] += page.state == PageState::Used ? sign : 0;
            shared += page.state == PageState::Used && page.shared() ? sign : 0;
            cached += page.state == PageState::Cached ? sign : 0;
        };
        count(-1);
        const std::int32_t known = who.at(event);
        namesRequests_ = namesRequests_ || known >= 0;
        const bool stays = page.shared() && page.owner == event.owner && event.state == PageState::Used;
        requests_.push_back(stays ? page.request : known); // the first taker may have gone while others hold the page
        page = {event.state, event.owner, event.sequences, requests_.back()};
        count(1);
        used_.add(event.time, used);
        shared_.add(event.time, shared);
        cached_.add(event.time, cached);
        double full = 0, sliding = 0;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            (groups_[g].sliding ? sliding : full) += usedOf[g] * static_cast<double>(groups_[g].pageBytes);
        }
        fullPages_.add(event.time, full);
        slidingPages_.add(event.time, sliding);
        const bool last = i + 1 == events_.size() || events_[i + 1].time != event.time;
        if (last && used > most) { // changes of one instant belong together
            most = used;
            fullest_ = event.time;
        }
    }
    for (BatchCurve* curve : {&used_, &shared_, &cached_, &fullPages_, &slidingPages_}) {
        curve->setEnd(end_);
        curve->finish();
    }
}

void KvPool::takeKept(const profiler::RunTimeline& timeline, const profiler::KvPoolSteps& steps) {
    for (const base::RequestEvent& event : timeline.requests().events()) {
        Life& life = lives_[event.request];
        life.prompt = event.phase == RequestChange::Arrived ? event.tokens : life.prompt;
    }
    for (const base::TokenEvent& token : timeline.tokens().all()) {
        if (const auto life = lives_.find(token.request); life != lives_.end()) {
            life->second.tokens.push_back(token.time);
        }
    }
    HeldTokens kept(window_, fullTokens_, slidingTokens_);
    for (const profiler::KvHeldChange& change : profiler::kvHeldTokens(timeline, steps)) {
        kept.set(change.request, change.time, change.tokens.value_or(0));
    }
    for (BatchCurve* curve : {&fullTokens_, &slidingTokens_}) {
        curve->setEnd(end_);
        curve->finish();
    }
}

/// At every change of pages or of tokens, so that the curve is what the instants say.
void KvPool::makeWaste() {
    if (!fullTokens_.empty() && fullToken_ + slidingToken_ > 0) {
        for (const base::TimeNs place : changes()) {
            waste_.add(place, bytesAt(place).waste());
        }
    }
    waste_.setEnd(end_);
    waste_.finish();
}

std::vector<base::TimeNs> KvPool::changes() const {
    std::vector<base::TimeNs> places;
    std::ranges::set_union(fullPages_.places(), fullTokens_.places(), std::back_inserter(places));
    return places;
}

void KvPool::makeMoments() {
    constexpr std::size_t kStretches = 400, kEach = 5;
    const std::vector<base::TimeNs> places = changes();
    if (places.size() <= kStretches * kEach) {
        moments_ = places;
        return;
    }
    const double each = static_cast<double>(places.back() - places.front()) / kStretches;
    const auto stretchOf = [&](base::TimeNs place) {
        return static_cast<std::size_t>(static_cast<double>(place - places.front()) / std::max(1.0, each));
    };
    for (std::size_t i = 0; i < places.size();) {
        const std::size_t stretch = stretchOf(places[i]);
        struct Extreme {
            base::TimeNs least, most;
            std::uint64_t low, high;
            void take(base::TimeNs place, std::uint64_t bytes) {
                least = bytes < low ? place : least;
                most = bytes > high ? place : most;
                low = std::min(low, bytes);
                high = std::max(high, bytes);
            }
        };
        const base::TimeNs first = places[i];
        const KvPoolBytes at = bytesAt(first);
        Extreme measured{first, first, at.held(), at.held()}, predicted{first, first, at.kept(), at.kept()};
        for (; i < places.size() && stretchOf(places[i]) == stretch; ++i) {
            const KvPoolBytes bytes = bytesAt(places[i]);
            measured.take(places[i], bytes.held());
            predicted.take(places[i], bytes.kept());
        }
        std::array<base::TimeNs, kEach> kept{first, measured.least, measured.most, predicted.least, predicted.most};
        std::ranges::sort(kept);
        moments_.insert(moments_.end(), kept.begin(), std::unique(kept.begin(), kept.end()));
    }
    if (moments_.back() != places.back()) {
        moments_.push_back(places.back());
    }
}

std::optional<KvPoolRequest> KvPool::requestAt(std::int32_t request, base::TimeNs time) const {
    const auto life = lives_.find(request);
    if (life == lives_.end()) {
        return std::nullopt;
    }
    const auto& tokens = life->second.tokens;
    return KvPoolRequest{life->second.prompt, std::upper_bound(tokens.begin(), tokens.end(), time) - tokens.begin()};
}

std::vector<std::vector<KvPoolPanel>> KvPool::at(base::TimeNs time) const {
    const auto after = std::upper_bound(events_.begin(), events_.end(), time,
                                        [](base::TimeNs t, const base::KvPageEvent& event) { return t < event.time; });
    const auto count = static_cast<std::size_t>(after - events_.begin());
    const Check& check = checks_[std::min(count / checkEvery_, checks_.size() - 1)];
    std::vector<std::vector<KvPoolPanel>> pages = check.pages;
    for (std::size_t i = check.event; i < count; ++i) {
        const base::KvPageEvent& event = events_[i];
        pages[static_cast<std::size_t>(event.group)][static_cast<std::size_t>(event.page)] = {
            event.state, event.owner, event.sequences, requests_[i]};
    }
    return pages;
}

KvPoolBytes KvPool::bytesAt(base::TimeNs time) const {
    KvPoolBytes bytes;
    bytes.full = wholeBytes(fullPages_.at(time));
    bytes.sliding = wholeBytes(slidingPages_.at(time));
    const double all = fullTokens_.at(time).value_or(0);
    bytes.keptFull = wholeBytes(all * static_cast<double>(fullToken_));
    bytes.keptSliding = wholeBytes(slidingTokens_.at(time).value_or(0) * static_cast<double>(slidingToken_));
    bytes.noWindow = wholeBytes(all * static_cast<double>(fullToken_ + slidingToken_));
    return bytes;
}

std::optional<base::TimeNs> KvPool::change(base::TimeNs time, int direction) const {
    const auto by = [](const base::KvPageEvent& event, base::TimeNs t) { return event.time < t; };
    auto at = std::lower_bound(events_.begin(), events_.end(), direction > 0 ? time + 1 : time, by);
    if (direction > 0) {
        return at == events_.end() ? std::nullopt : std::optional(at->time);
    }
    return at == events_.begin() ? std::nullopt : std::optional((at - 1)->time);
}

} // namespace vitrine::ui
