// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/fit_changes.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kSmallerChunk = 8; ///< times

using engine::Experiment;
using Changes = std::vector<std::pair<const char*, engine::OptionValue>>;

std::string changed(Experiment experiment, const Changes& values) {
    for (const auto& [key, value] : values) {
        experiment.set(key, value);
    }
    return experiment.jsonText();
}

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
    addTypes(*experiment);
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

void FitChanges::addTypes(const engine::Experiment& spec) {
    const auto addOne = [&](const QString& title, const QString& why, const Changes& values) {
        add(title, why, changed(spec, values));
    };
    if (spec.text("weights") == "dequantized" || spec.text("weights") == "both") {
        addOne(QObject::tr("Quantized weights"), QObject::tr("they stay as the checkpoint stores them"),
               {{"weights", std::string("quantized")}});
    }
    if (spec.text("dtype") == "float32") {
        addOne(QObject::tr("Compute in bfloat16"), QObject::tr("activations and cache take half the bytes"),
               {{"dtype", std::string("bfloat16")}});
    }
    std::int64_t chunk = 0;
    if (takes(spec, "prefill_chunk")) {
        chunk = spec.integer("prefill_chunk");
        chunk = (chunk > 0 ? chunk : spec.text("backend") == "cpu" ? 512 : 8192) / kSmallerChunk;
    }
    if (chunk > 0) {
        addOne(QObject::tr("Prefill in steps of %1 tokens").arg(countText(chunk)),
               QObject::tr("the arena of a prefill step is smaller"), {{"prefill_chunk", chunk}});
    }
    const std::string type = spec.text("kv_dtype");
    if (!takes(spec, "kv_dtype") || type == "fp8" || type == "int8") {
        return;
    }
    addOne(QObject::tr("KV cache in int8"), QObject::tr("a byte for each element and a scale for each head"),
           {{"kv_dtype", std::string("int8")}});
    if (chunk > 0) {
        addOne(QObject::tr("KV cache in int8, prefill in steps of %1").arg(countText(chunk)),
               QObject::tr("the two changes together"), {{"kv_dtype", std::string("int8")}, {"prefill_chunk", chunk}});
    }
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
    return change.search ? changed(*Experiment::read(change.experiment), {{change.key.c_str(), *change.search->next()}})
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
    const auto rank = [](const FitChange& change) { return change.priced ? (change.fits ? 0 : 2) : 1; };
    std::ranges::stable_sort(out, {}, rank);
    return out;
}

std::uint64_t readableBudget(std::uint64_t bytes) {
    constexpr double kMiB = 0x1p20, kGiB = 0x1p30;
    const auto value = static_cast<double>(bytes);
    const double step = value >= 0.999 * kGiB ? kGiB / 100 : value >= 99 * kMiB ? kMiB : kMiB / 10;
    return static_cast<std::uint64_t>(std::ceil(std::ceil(value / step) * step));
}

} // namespace vitrine::ui
