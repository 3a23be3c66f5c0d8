// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kv_pool.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "ui/models/format.h"
#include "ui/models/json_values.h"

namespace vitrine::ui {

namespace {

using base::PageState;
using base::RequestPhase;

constexpr std::int32_t kMostPages = 1 << 22;
constexpr std::int32_t kMostGroups = 16;
constexpr std::size_t kCheckEvery = 4096; ///< events between two whole states

std::uint64_t wholeBytes(std::optional<double> value) {
    return value && *value > 0 ? static_cast<std::uint64_t>(std::llround(*value)) : 0;
}

/// Groups in the order of the events' numbers, which is that of the run's metrics.
std::vector<KvPoolGroup> groupsOf(const sessions::RunInfo& run) {
    std::vector<KvPoolGroup> groups;
    const nlohmann::json metrics = parsedObject(run.metricsJson);
    const auto cache = metrics.find("kv_cache");
    if (cache == metrics.end() || !cache->is_object()) {
        return groups;
    }
    const auto rows = cache->find("groups");
    for (std::size_t i = 0;
         rows != cache->end() && rows->is_array() && i < std::min<std::size_t>(rows->size(), kMostGroups); ++i) {
        KvPoolGroup group;
        const nlohmann::json& row = (*rows)[i];
        if (row.is_object()) {
            group.name = textAt(row, "name");
            group.sliding = numberAt(row, "window").value_or(0) > 0;
            group.pageTokens = std::llround(std::clamp(numberAt(row, "page_tokens").value_or(0), 0.0, 1e9));
            group.pageBytes =
                static_cast<std::uint64_t>(group.pageTokens) * bytesAt(row, "bytes_per_token").value_or(0);
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

/// Tokens that a request has in the cache, and those of it that sliding layers keep.
class KeptTokens {
public:
    KeptTokens(std::int64_t window, BatchCurve& full, BatchCurve& sliding)
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

FlatNode factRow(const QString& name, const QString& value, const QString& raw, bool strong = false) {
    FlatNode node;
    node.cells = {FlatCell(name), FlatCell(value, QVariant(), raw)};
    node.emphasis = strong;
    return node;
}

QString stateWord(const KvPoolPage& page) {
    return page.state == PageState::Used     ? (page.shared() ? QObject::tr("shared") : QObject::tr("used"))
           : page.state == PageState::Cached ? QObject::tr("kept for its prefix")
                                             : QObject::tr("free");
}

} // namespace

double KvPoolBytes::waste() const {
    const auto held = static_cast<double>(measured());
    return held > 0 ? std::clamp(1 - static_cast<double>(predicted()) / held, 0.0, 1.0) : 0;
}

std::shared_ptr<const KvPool> KvPool::make(const sessions::RunInfo& run, const profiler::MemoryTimeline& timeline) {
    if (timeline.kvPages().empty()) {
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
    for (const base::BatchStepEvent& step : timeline.batchSteps()) {
        pool->poolPages_ = std::max(pool->poolPages_, step.usedPages + step.cachedPages + step.freePages);
    }
    pool->takePages(timeline);
    if (pool->events_.empty()) {
        return nullptr;
    }
    pool->takeKept(timeline);
    pool->makeWaste();
    return pool;
}

void KvPool::takePages(const profiler::MemoryTimeline& timeline) {
    for (const base::KvPageEvent& event : timeline.kvPages()) {
        if (event.group < 0 || event.group >= kMostGroups || event.page < 0 || event.page >= kMostPages) {
            continue;
        }
        const auto group = static_cast<std::size_t>(event.group);
        while (groups_.size() <= group) {
            groups_.push_back({QObject::tr("group %1").arg(groups_.size()), false, 0, 0, 0});
        }
        groups_[group].pages = std::max(groups_[group].pages, static_cast<std::size_t>(event.page) + 1);
        events_.push_back(event);
    }
    begin_ = events_.empty() ? 0 : events_.front().time;
    std::vector<std::vector<KvPoolPage>> now;
    now.reserve(groups_.size());
    for (const KvPoolGroup& group : groups_) {
        now.emplace_back(group.pages);
    }
    double used = 0, shared = 0, cached = 0, most = -1;
    std::vector<double> usedOf(groups_.size());
    for (std::size_t i = 0; i < events_.size(); ++i) {
        if (i % kCheckEvery == 0) {
            checks_.push_back({i, now});
        }
        const base::KvPageEvent& event = events_[i];
        const auto group = static_cast<std::size_t>(event.group);
        KvPoolPage& page = now[group][static_cast<std::size_t>(event.page)];
        const auto count = [&](double sign) {
            used += page.state == PageState::Used ? sign : 0;
            usedOf[group] += page.state == PageState::Used ? sign : 0;
            shared += page.state == PageState::Used && page.shared() ? sign : 0;
            cached += page.state == PageState::Cached ? sign : 0;
        };
        count(-1);
        page = {event.state, event.owner, event.sequences};
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

/// From the borders of requests and their tokens: the last token of an answer is not fed back.
void KvPool::takeKept(const profiler::MemoryTimeline& timeline) {
    struct Life {
        std::int64_t prompt = 0, made = 0;
        bool runs = false;
    };
    std::map<std::int32_t, Life> lives;
    KeptTokens kept(window_, fullTokens_, slidingTokens_);
    const auto requests = timeline.requests();
    const auto tokens = timeline.tokens();
    std::size_t token = 0;
    const auto takeTokens = [&](base::TimeNs until) {
        for (; token < tokens.size() && tokens[token].time < until; ++token) {
            const auto life = lives.find(tokens[token].request);
            if (life == lives.end()) {
                continue;
            }
            ++life->second.made;
            if (life->second.runs) {
                kept.set(life->first, tokens[token].time, life->second.prompt + life->second.made - 1);
            }
        }
    };
    for (const base::RequestEvent& event : requests) {
        takeTokens(event.time);
        Life& life = lives[event.request];
        switch (event.phase) {
        case RequestPhase::Arrived:
            life.prompt = event.tokens;
            break;
        case RequestPhase::Admitted: // its pages are taken for the step that reads the prompt
            life.runs = true;
            kept.set(event.request, event.time, life.prompt);
            break;
        case RequestPhase::Resumed:
            life.runs = true;
            kept.set(event.request, event.time, life.prompt + std::max<std::int64_t>(0, life.made - 1));
            break;
        case RequestPhase::FirstToken:
            break;
        case RequestPhase::Preempted:
        case RequestPhase::Finished:
        case RequestPhase::Cancelled:
        case RequestPhase::Refused:
            life.runs = false;
            kept.set(event.request, event.time, 0);
            break;
        }
    }
    takeTokens(end_);
    for (BatchCurve* curve : {&fullTokens_, &slidingTokens_}) {
        curve->setEnd(end_);
        curve->finish();
    }
}

void KvPool::makeWaste() {
    if (!fullTokens_.empty() && fullToken_ + slidingToken_ > 0) {
        base::TimeNs before = -1;
        for (const base::KvPageEvent& event : events_) {
            if (event.time != before) {
                before = event.time;
                waste_.add(event.time, bytesAt(event.time).waste());
            }
        }
    }
    waste_.setEnd(end_);
    waste_.finish();
}

std::vector<std::vector<KvPoolPage>> KvPool::at(base::TimeNs time) const {
    const auto after = std::upper_bound(events_.begin(), events_.end(), time,
                                        [](base::TimeNs t, const base::KvPageEvent& event) { return t < event.time; });
    const auto count = static_cast<std::size_t>(after - events_.begin());
    const Check& check = checks_[std::min(count / kCheckEvery, checks_.size() - 1)];
    std::vector<std::vector<KvPoolPage>> pages = check.pages;
    for (std::size_t i = check.event; i < count; ++i) {
        const base::KvPageEvent& event = events_[i];
        pages[static_cast<std::size_t>(event.group)][static_cast<std::size_t>(event.page)] = {event.state, event.owner,
                                                                                              event.sequences};
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

QString kvPoolPageWords(const KvPoolGroup& group, std::size_t number, const KvPoolPage& page) {
    const QString name = QObject::tr("Page %1, %2").arg(countText(static_cast<qint64>(number)), group.name);
    switch (page.state) {
    case PageState::Free:
        return QObject::tr("%1: free").arg(name);
    case PageState::Cached:
        return QObject::tr("%1: kept for a prefix that may come again").arg(name);
    case PageState::Used:
        break;
    }
    return page.shared() ? QObject::tr("%1: held by %2 sequences, taken by sequence %3")
                               .arg(name)
                               .arg(page.sequences)
                               .arg(page.owner)
                         : QObject::tr("%1: sequence %2").arg(name).arg(page.owner);
}

FlatTreePtr kvPoolTable(const KvPool& pool, base::TimeNs time, std::size_t limit) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Group")},
                      {QObject::tr("Page"), true},
                      {QObject::tr("State")},
                      {QObject::tr("Sequence"), true},
                      {QObject::tr("Held by"), true}};
    const auto pages = pool.at(time);
    for (std::size_t g = 0; g < pages.size(); ++g) {
        for (std::size_t i = 0; i < pages[g].size() && table->nodes.size() < limit; ++i) {
            const KvPoolPage& page = pages[g][i];
            FlatNode node;
            node.key = (static_cast<quint64>(g) << 32U) + i;
            node.cells = {FlatCell(pool.groups()[g].name),
                          {countText(static_cast<qint64>(i)), QVariant::fromValue<qulonglong>(i)},
                          FlatCell(stateWord(page)),
                          {page.owner >= 0 ? QString::number(page.owner) : unknownText(), QVariant(page.owner)},
                          {QString::number(page.sequences), QVariant(page.sequences)}};
            table->nodes.push_back(std::move(node));
        }
    }
    return table;
}

FlatTreePtr kvPoolValues(const KvPool& pool, base::TimeNs time) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Pool")}, {QString(), true}};
    const auto count = [&](const QString& name, double value, bool strong = false) {
        table->nodes.push_back(
            factRow(name, countText(std::llround(value)), QString::number(std::llround(value)), strong));
    };
    const double used = pool.used().at(time).value_or(0), cached = pool.cached().at(time).value_or(0);
    count(QObject::tr("pages used"), used, true);
    count(QObject::tr("of them shared"), pool.shared().at(time).value_or(0));
    count(QObject::tr("kept for prefixes"), cached);
    if (pool.poolPages() > 0) {
        count(QObject::tr("free"), std::max(0.0, static_cast<double>(pool.poolPages()) - used - cached));
    }
    const KvPoolBytes bytes = pool.bytesAt(time);
    const auto size = [&](const QString& name, std::uint64_t value, bool strong = false) {
        FlatNode node = factRow(name, bytesText(value), QString::number(value), strong);
        node.cells[1].tip = exactBytesText(value);
        table->nodes.push_back(std::move(node));
    };
    if (bytes.measured() > 0) {
        size(QObject::tr("full layers"), bytes.full);
        if (bytes.sliding > 0) {
            size(QObject::tr("sliding layers"), bytes.sliding);
        }
        size(QObject::tr("measured, whole pages"), bytes.measured(), true);
    }
    if (bytes.predicted() > 0) {
        size(QObject::tr("predicted, tokens kept"), bytes.predicted());
        if (bytes.predicted() > bytes.measured()) {
            size(QObject::tr("shared pages save"), bytes.predicted() - bytes.measured());
        } else {
            table->nodes.push_back(
                factRow(QObject::tr("fragmentation"), shareText(bytes.waste()), QString::number(bytes.waste())));
        }
        size(QObject::tr("without window"), bytes.noWindow);
    }
    return table;
}

FlatTreePtr kvPoolOwners(const KvPool& pool, base::TimeNs time, std::size_t limit) {
    struct Row {
        std::int32_t owner = 0;
        std::size_t pages = 0, shared = 0;
    };
    std::map<std::int32_t, Row> rows;
    for (const auto& group : pool.at(time)) {
        for (const KvPoolPage& page : group) {
            if (page.state == PageState::Used) {
                Row& row = rows[page.owner];
                row.owner = page.owner;
                ++row.pages;
                row.shared += page.shared() ? 1 : 0;
            }
        }
    }
    std::vector<Row> sorted;
    sorted.reserve(rows.size());
    for (const auto& [owner, row] : rows) {
        sorted.push_back(row);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) { return a.pages > b.pages; });
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Owner")}, {QObject::tr("pages"), true}, {QObject::tr("shared"), true}};
    for (std::size_t i = 0; i < std::min(limit, sorted.size()); ++i) {
        FlatNode node;
        node.key = static_cast<quint64>(sorted[i].owner) + 1;
        node.cells = {
            FlatCell(QObject::tr("sequence %1").arg(sorted[i].owner)),
            {countText(static_cast<qint64>(sorted[i].pages)), QVariant::fromValue<qulonglong>(sorted[i].pages)},
            {countText(static_cast<qint64>(sorted[i].shared)), QVariant::fromValue<qulonglong>(sorted[i].shared)}};
        table->nodes.push_back(std::move(node));
    }
    return table;
}

} // namespace vitrine::ui
