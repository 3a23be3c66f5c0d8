// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/planner/plan_changes.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/planning/largest_fit.h"
#include "engine/workload/experiment/experiment.h"
#include "kernels/core/device_traits.h"

namespace vitrine::engine {

namespace {

/// Chunks of logits take less of a smaller device, so an experiment may need so much less there.
constexpr std::uint64_t kLogitsThatShrink = std::uint64_t{1} << 30;
constexpr std::size_t kMostPaired = 6;   ///< changes that are tried two by two: the pairs of six are fifteen plans
constexpr std::size_t kMostTooSmall = 3; ///< changes that are shown though they are not enough

/// Collects changes of options that the workload takes and that have another value now.
class ChangeList {
public:
    explicit ChangeList(const Experiment& planned) : planned_(planned) {}

    void add(std::string_view key, const OptionValue& value, bool lessWork = false) {
        if (!takesOption(planned_, key)) {
            return;
        }
        OptionEdit edit{std::string(key), value};
        if (edited(planned_, {edit}) != planned_) {
            out_.push_back({{std::move(edit)}, {}, lessWork, false});
        }
    }
    void choose(std::string_view key, const char* value) { add(key, std::string(value)); }
    /// The number divided by each of these; at least 1.
    void divide(std::string_view key, std::int64_t now, std::initializer_list<std::int64_t> divisors, bool lessWork) {
        std::int64_t last = now;
        for (const std::int64_t divisor : divisors) {
            if (const std::int64_t value = std::max<std::int64_t>(now / divisor, 1); value < last) {
                add(key, value, lessWork);
                last = value;
            }
        }
    }
    std::int64_t numberOf(std::string_view key, std::int64_t otherwise) const {
        const std::int64_t value = takesOption(planned_, key) ? planned_.maybeInteger(key).value_or(0) : 0;
        return value > 0 ? value : otherwise;
    }
    std::vector<PlanChange> take() { return std::move(out_); }

private:
    const Experiment& planned_;
    std::vector<PlanChange> out_;
};

void addTraining(const Experiment& planned, ChangeList& list) {
    list.choose("tiled_mlp", "on");
    if (const std::string kept = planned.text("checkpoint"); kept == "none" || kept.empty()) {
        list.choose("checkpoint", "layer");
    }
    list.choose("checkpoint", "offload");
    const std::int64_t tokens = contextOf(planned).value_or(0) * list.numberOf("batch", 1);
    list.choose("loss_chunks", "auto");
    if (tokens > 1024) {
        list.add("loss_chunks", std::to_string(tokens / 1024));
    }
    list.choose("optimizer", "adamw8bit");
    list.choose("train", "attention");
    list.divide("rank", list.numberOf("rank", 16), {2, 4}, false);
    if (planned.text("method") == "full") {
        list.choose("method", "lora");
    }
    if (planned.text("method") != "qlora") {
        list.choose("method", "qlora");
    }
}

/// Of reinforcement learning: what its rollouts hold. Fewer slots make the same answers, one after the other.
void addRollouts(const Experiment& planned, ChangeList& list) {
    const std::int64_t answers = planned.integer("prompts") * planned.integer("samples");
    list.divide("slots", std::min(list.numberOf("slots", answers), answers), {2, 4, 8}, false);
    if (planned.text("rollout").empty() || planned.text("rollout") == "bf16") {
        list.choose("rollout", "fp8");
        list.choose("rollout", "int4");
    }
    if (planned.text("qat") == "none") {
        list.choose("qat", "int4");
    }
    if (const std::string type = planned.text("kv_dtype"); type != "int8" && type != "fp8") {
        list.choose("kv_dtype", "fp8");
    }
    list.divide("max_new_tokens", list.numberOf("max_new_tokens", 1), {2, 4}, true);
    list.divide("prompts", list.numberOf("prompts", 1), {2, 4}, true);
}

void addAnswering(const Experiment& planned, ChangeList& list) {
    const std::int64_t chunk = list.numberOf("prefill_chunk", planned.text("backend") == "cpu" ? 512 : 8192);
    list.divide("prefill_chunk", chunk, {4, 16}, false);
    list.divide("token_budget", list.numberOf("token_budget", 8192), {4, 16}, false);
    list.add("sliding_cache", true);
    if (const std::string type = planned.text("kv_dtype"); type != "int8" && type != "fp8") {
        list.choose("kv_dtype", "fp8");
        list.choose("kv_dtype", "int8");
    }
    list.divide("slots", list.numberOf("slots", 1), {2, 4, 8}, true);
    list.divide("max_new_tokens", list.numberOf("max_new_tokens", 1), {2, 8}, true);
}

bool helps(const PlanChange& change, const PlanPrice& before) {
    return change.price.known() && (change.price.fits || change.price.reserved < before.reserved);
}

/// Fits before does not fit; same work before less work; then time or what is missing.
void sortChanges(std::vector<PlanChange>& changes) {
    const auto rank = [](const PlanChange& change) {
        const double cost = change.price.fits ? change.price.seconds : static_cast<double>(-change.price.spare());
        return std::tuple(!change.price.fits, change.otherDevice, change.lessWork, cost, change.edits.size());
    };
    std::ranges::stable_sort(changes, [&](const PlanChange& a, const PlanChange& b) { return rank(a) < rank(b); });
    const auto tooSmall = std::ranges::find_if(changes, [](const PlanChange& change) { return !change.price.fits; });
    if (std::distance(tooSmall, changes.end()) > static_cast<std::ptrdiff_t>(kMostTooSmall)) {
        changes.erase(tooSmall + static_cast<std::ptrdiff_t>(kMostTooSmall), changes.end());
    }
}

/// The largest batch that fits below the one asked for.
std::optional<PlanChange> smallerBatch(PlanPricer& pricer, const Experiment& planned, const PlanPrice& before,
                                       const base::StopToken& stop) {
    const std::int64_t now = takesOption(planned, "batch") ? planned.maybeInteger("batch").value_or(1) : 1;
    if (now < 2) {
        return std::nullopt;
    }
    FitSearch search(1, now);
    search.tried(now, false, before.reserved, before.budget);
    PlanChange change{{{"batch", std::int64_t{1}}}, {}, true, false};
    for (auto next = search.next(); next; next = search.next()) {
        const PlanPrice price = pricer.price(edited(planned, {{"batch", *next}}), stop);
        search.tried(*next, price.fits, price.reserved, price.budget);
        if (price.fits || *next == 1) {
            change.edits.front().value = *next;
            change.price = price;
        }
        if (*next == 1 && !price.fits) {
            break;
        }
    }
    return change;
}

} // namespace

std::vector<PlanChange> possibleChanges(const Experiment& planned) {
    ChangeList list(planned);
    if (const std::string weights = planned.text("weights"); weights == "dequantized" || weights == "both") {
        list.choose("weights", "quantized");
    }
    if (planned.text("dtype") == "float32") {
        list.choose("dtype", "bfloat16");
    }
    if (takesOption(planned, "tiled_mlp")) {
        addTraining(planned, list);
        if (takesOption(planned, "rollout")) {
            addRollouts(planned, list);
        }
    } else {
        addAnswering(planned, list);
    }
    return list.take();
}

std::optional<PlanChange> deviceThatFits(PlanPricer& pricer, const Experiment& planned, std::uint64_t budget,
                                         const base::StopToken& stop) {
    if (!takesOption(planned, "device_profile") || planned.text("backend") == "cpu") {
        return std::nullopt;
    }
    std::vector<std::pair<std::uint64_t, std::string>> larger;
    const std::uint64_t needed = pricer.price(planned, stop).reserved;
    for (const std::string& name : kernels::deviceProfileNames()) {
        const std::uint64_t bytes = kernels::loadDeviceProfile(name).memoryBytes;
        if (bytes > budget && bytes + kLogitsThatShrink >= needed) { // smaller ones need no plan
            larger.emplace_back(bytes, name);
        }
    }
    std::ranges::sort(larger);
    for (const auto& [bytes, name] : larger) {
        PlanChange change{{{"device_profile", name}}, {}, false, true};
        if (planned.has("vram_budget")) {
            change.edits.push_back({"vram_budget", bytes});
        }
        change.price = pricer.price(edited(planned, change.edits), stop);
        if (change.price.fits) {
            return change;
        }
    }
    return std::nullopt;
}

std::optional<PlanChange> ranksThatFit(PlanPricer& pricer, const Experiment& planned, const base::StopToken& stop) {
    constexpr std::int64_t kMostTimes = 16;
    if (!takesOption(planned, "tp") || planned.text("backend") == "cpu") {
        return std::nullopt;
    }
    const std::int64_t now = planned.integer("tp");
    for (std::int64_t times = 2; times <= kMostTimes; times *= 2) {
        PlanChange change{{{"tp", now * times}}, {}, false, true};
        change.price = pricer.price(edited(planned, change.edits), stop);
        if (!change.price.known()) {
            return std::nullopt; // the model cannot be divided so
        }
        if (change.price.fits) {
            return change;
        }
    }
    return std::nullopt;
}

std::vector<PlanChange> pairsOfChanges(std::vector<PlanChange> changes) {
    std::erase_if(changes, [](const PlanChange& change) { return change.price.fits; });
    std::ranges::stable_sort(changes, {}, [](const PlanChange& change) { return change.price.reserved; });
    changes.resize(std::min(changes.size(), kMostPaired));
    std::vector<PlanChange> out;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        for (std::size_t j = i + 1; j < changes.size(); ++j) {
            if (changes[i].edits.front().key != changes[j].edits.front().key) {
                out.push_back({{changes[i].edits.front(), changes[j].edits.front()},
                               {},
                               changes[i].lessWork || changes[j].lessWork,
                               false});
            }
        }
    }
    return out;
}

std::vector<PlanChange> fittingChanges(PlanPricer& pricer, const Experiment& planned, std::int64_t longest,
                                       const base::StopToken& stop,
                                       const std::function<void(const std::vector<PlanChange>&)>& found) {
    const PlanPrice before = pricer.price(planned, stop);
    std::vector<PlanChange> out;
    const auto report = [&] {
        if (found) {
            std::vector<PlanChange> sorted = out;
            sortChanges(sorted);
            found(sorted);
        }
    };
    const auto tryAll = [&](std::vector<PlanChange> changes) {
        std::vector<Experiment> needed;
        needed.reserve(changes.size());
        for (const PlanChange& change : changes) {
            needed.push_back(edited(planned, change.edits));
        }
        pricer.priceAll(needed, stop);
        for (PlanChange& change : changes) {
            change.price = pricer.price(edited(planned, change.edits), stop);
            if (helps(change, before)) {
                out.push_back(std::move(change));
            }
        }
    };
    tryAll(possibleChanges(planned));
    report();
    if (const std::int64_t now = contextOf(planned).value_or(0); longest > 0 && longest < now) {
        const Experiment shorter = withContext(planned, longest);
        const std::string key = takesOption(planned, "prompt_length") ? "prompt_length" : "prompt_tokens";
        const OptionValue value = key == "prompt_length" ? OptionValue(longest) : OptionValue(std::to_string(longest));
        out.push_back({{{key, value}}, pricer.price(shorter, stop), true, false});
    }
    std::optional<PlanChange> batch;
    std::optional<PlanChange> device;
    std::optional<PlanChange> ranks;
    forEachPlan(3, [&](std::size_t i) {
        if (i == 0) {
            batch = smallerBatch(pricer, planned, before, stop);
        } else if (i == 1) {
            device = deviceThatFits(pricer, planned, before.budget, stop);
        } else {
            ranks = ranksThatFit(pricer, planned, stop);
        }
    });
    if (batch && helps(*batch, before)) {
        out.push_back(std::move(*batch));
    }
    const bool enough = std::ranges::any_of(
        out, [](const PlanChange& change) { return change.price.fits && !change.lessWork && !change.otherDevice; });
    if (!enough) { // where one change keeps the work and fits, two cost more
        tryAll(pairsOfChanges(out));
    }
    for (std::optional<PlanChange>* change : {&device, &ranks}) {
        if (*change) {
            out.push_back(std::move(**change));
        }
    }
    report();
    sortChanges(out);
    return out;
}

} // namespace vitrine::engine
