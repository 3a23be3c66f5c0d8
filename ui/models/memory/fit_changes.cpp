// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/fit_changes.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr std::ptrdiff_t kMostTooSmall = 3; ///< changes that are shown though they are not enough

using engine::Experiment;

bool takes(const Experiment& experiment, std::string_view option) {
    return experiment.workload().plan != nullptr &&
           engine::optionApplies(*engine::findOption(option), experiment.workload().name, experiment.isPlan());
}

/// What a search is called before and after it has found a number.
QString searchTitle(const FitChange& change) {
    const std::int64_t found = change.search->found();
    const QString now = countText(change.now), then = countText(found);
    if (change.key == "prompt_length") {
        return found == 0 ? QObject::tr("A shorter prompt")
                          : QObject::tr("Prompt of %1 tokens instead of %2").arg(then, now);
    }
    if (change.key == "batch") {
        return found == 0 ? QObject::tr("A smaller batch") : QObject::tr("Batch of %1 instead of %2").arg(then, now);
    }
    return found == 0 ? QObject::tr("Fewer new tokens") : QObject::tr("%1 new tokens instead of %2").arg(then, now);
}

} // namespace

QString fitText(const FitChange& change, std::uint64_t budget) {
    return change.fits ? QObject::tr("%1 spare").arg(bytesText(budget - std::min(change.peak, budget)))
                       : QObject::tr("%1 over").arg(bytesText(change.peak - std::min(change.peak, budget)));
}

FitChanges::FitChanges(const std::string& specJson, std::uint64_t budget) : budget_(budget) {
    const auto experiment = Experiment::read(specJson);
    if (!experiment) {
        return;
    }
    add({}, {}, specJson);
    addOptions(*experiment);
    addSearches(*experiment);
    if (all_.size() == 1) {
        all_.clear(); // nothing to change
    }
}

void FitChanges::add(const QString& title, const QString& why, const std::string& experiment) {
    FitChange change;
    change.title = title;
    change.why = why;
    change.experiment = experiment;
    all_.push_back(std::move(change));
}

void FitChanges::addOptions(const engine::Experiment& spec) {
    for (const engine::PlanChange& one : engine::possibleChanges(spec)) {
        if (one.edits.front().key != "max_new_tokens") { // a search finds the most that fit
            add(changeName(one, spec), changeEffect(one), engine::edited(spec, one.edits).jsonText());
            all_.back().edits = one.edits;
        }
    }
    singlesEnd_ = all_.size();
}

void FitChanges::addPairs() {
    std::vector<engine::PlanChange> priced;
    for (const FitChange& change : all_) {
        if (change.fits && !change.edits.empty()) {
            return; // one is enough
        }
        if (!change.edits.empty() && change.peak > 0 && change.peak < all_.front().peak) {
            engine::PlanPrice price;
            price.reserved = change.peak;
            priced.push_back({change.edits, std::move(price), false, false});
        }
    }
    const auto spec = Experiment::read(all_.front().experiment);
    std::vector<FitChange> pairs;
    for (const engine::PlanChange& pair : engine::pairsOfChanges(std::move(priced))) {
        FitChange change;
        change.title = changeName(pair, *spec);
        change.why = QObject::tr("the two changes together");
        change.edits = pair.edits;
        change.experiment = engine::edited(*spec, pair.edits).jsonText();
        pairs.push_back(std::move(change));
    }
    all_.insert(all_.begin() + static_cast<std::ptrdiff_t>(singlesEnd_), pairs.begin(), pairs.end());
}

void FitChanges::addSearches(const engine::Experiment& spec) {
    const std::pair<const char*, QString> kinds[] = {
        {"prompt_length", QObject::tr("the longest that fits with nothing else changed")},
        {"batch", QObject::tr("the largest that fits with nothing else changed")},
        {"max_new_tokens", QObject::tr("the most that fit with nothing else changed")}};
    for (const auto& [key, why] : kinds) {
        const std::int64_t now = takes(spec, key) ? spec.maybeInteger(key).value_or(0) : 0;
        if (now > 1) {
            add({}, why, spec.jsonText());
            FitChange& change = all_.back();
            change.key = key;
            change.now = now;
            change.search = engine::FitSearch(1, now - 1); // where not even 1 fits, one question tells it
            change.title = searchTitle(change);
        }
    }
}

std::optional<std::string> FitChanges::question() const {
    if (next_ >= all_.size()) {
        return std::nullopt;
    }
    const FitChange& change = all_[next_];
    return change.search
               ? engine::edited(*Experiment::read(change.experiment), {{change.key, *change.search->next()}}).jsonText()
               : change.experiment;
}

void FitChanges::answer(const std::string& metricsJson, const QString& error) {
    const std::optional<std::string> asked = question();
    if (!asked) {
        return;
    }
    FitChange& change = all_[next_];
    const Json metrics = base::parsedObject(metricsJson);
    // The budget counts what is reserved; some plans know only what tensors take.
    const std::uint64_t peak = engine::countOf(metrics, engine::result::kPeakReservedBytes)
                                   .value_or(engine::countOf(metrics, engine::result::kPeakBytes).value_or(0));
    const double seconds = engine::numberOf(metrics, engine::result::kStepSecondsEstimate).value_or(0);
    const bool fits =
        error.isEmpty() && peak > 0 && peak <= budget_ && engine::flagOf(metrics, engine::result::kFits).value_or(true);
    if (!change.search || fits) {
        change.peak = peak;
        change.seconds = seconds;
        change.fits = fits;
        change.experiment = *asked;
    }
    change.error = error;
    change.priced = true;
    if (change.search) {
        change.search->tried(*change.search->next(), fits, peak > 0 ? std::optional(peak) : std::nullopt, budget_);
        change.title = searchTitle(change);
        change.priced = !change.search->next();
    } else if (next_ == 0 && peak > 0 && !fits) {
        for (FitChange& other : all_) { // the line of a search begins at what the run would have needed
            if (other.search) {
                other.search->tried(other.now, false, peak, budget_);
            }
        }
    }
    next_ += change.priced ? 1 : 0;
    if (next_ == singlesEnd_ && all_[next_ - 1].priced && !pairsAdded_) {
        pairsAdded_ = true;
        addPairs();
    }
}

std::vector<FitChange> FitChanges::shown() const {
    std::vector<FitChange> out;
    for (std::size_t i = 1; i < all_.size(); ++i) {
        const FitChange& change = all_[i];
        const bool lower = change.peak > 0 && change.peak < all_.front().peak;
        if (!change.priced || change.fits || (!change.search && lower)) {
            out.push_back(change);
        }
    }
    const auto rank = [](const FitChange& change) {
        const int group = change.priced ? (change.fits ? 0 : 2) : 1;
        const double cost = group == 0 ? change.seconds : group == 2 ? static_cast<double>(change.peak) : 0;
        return std::tuple(group, group == 0 && change.search.has_value(), cost); // a search takes work away
    };
    std::ranges::stable_sort(out, [&](const FitChange& a, const FitChange& b) { return rank(a) < rank(b); });
    const auto tooSmall =
        std::ranges::find_if(out, [](const FitChange& change) { return change.priced && !change.fits; });
    if (std::distance(tooSmall, out.end()) > kMostTooSmall) {
        out.erase(tooSmall + kMostTooSmall, out.end());
    }
    return out;
}

std::uint64_t readableBudget(std::uint64_t bytes) {
    constexpr double kMiB = 0x1p20, kGiB = 0x1p30;
    const auto value = static_cast<double>(bytes);
    const double step = value >= 0.999 * kGiB ? kGiB / 100 : value >= 99 * kMiB ? kMiB : kMiB / 10;
    return static_cast<std::uint64_t>(std::ceil(std::ceil(value / step) * step));
}

} // namespace vitrine::ui
