// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/comparison_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/experiment/answer_words.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/unfinished_run.h"

namespace vitrine::engine {
namespace {

/// "stop token" for "stop_token".
std::string spacedReason(std::string reason) {
    std::ranges::replace(reason, '_', ' ');
    return reason;
}

using Json = nlohmann::json;

/// A result that may lead the sentence, and how it is said of B. `{}` is the size of the change.
struct Candidate {
    const ResultField* field;
    const char* lower;
    const char* higher;
};
constexpr std::array<Candidate, 12> kCandidates{{
    {&result::kPeakBytes, "peaks {} lower", "peaks {} higher"},
    {&result::kPrefillSeconds, "prefills in {} less", "needs {} more for prefill"},
    {&result::kDecodeTokensPerSecond, "decodes {} slower", "decodes {} faster"},
    {&result::kTokensPerSecond, "makes {} less", "makes {} more"},
    {&result::kLoadSeconds, "loads in {} less", "needs {} more to load"},
    {&result::kStepSecondsEstimate, "needs {} less for a step", "needs {} more for a step"},
    {&result::kTrainedLoss, "ends with a loss {} lower", "ends with a loss {} higher"},
    {&result::kMaxContext, "fits a context {} tokens shorter", "fits a context {} tokens longer"},
    {&result::kMaxBatch, "fits {} sequences less", "fits {} sequences more"},
    {&result::kForwardMs, "runs forward in {} less", "needs {} more forward"},
    {&result::kBackwardMs, "runs backward in {} less", "needs {} more backward"},
    {&result::kSlotUtilization, "uses {} less of its slots", "uses {} more of its slots"},
}};

/// The share of a value, or of the run's time, below which a change leads no sentence beside others.
constexpr double kUsualNoise = 0.03;

struct Change {
    const Candidate* candidate;
    const ResultChange* row;
    double weight; ///< |change| / noise, of a time the less the smaller its part of the run is
    bool better;
};

const ResultChange* rowOf(const std::vector<ResultChange>& results, std::string_view path) {
    const auto found = std::ranges::find(results, path, &ResultChange::path);
    return found == results.end() ? nullptr : &*found;
}

/// Parts of the change of the peak by category, largest in its direction first.
struct Part {
    std::string name;
    double change = 0;
};
std::vector<Part> partsOfPeak(const std::vector<ResultChange>& results, double change) {
    const std::string prefix = std::string(result::kPeakByCategory.key) + ".";
    std::vector<Part> parts;
    for (const ResultChange& row : results) {
        if (row.path.starts_with(prefix)) {
            const double part = row.b.value_or(0) - row.a.value_or(0);
            if (part * change > 0) {
                parts.push_back({row.path.substr(prefix.size()), part});
            }
        }
    }
    std::ranges::stable_sort(parts, std::greater(), [](const Part& part) { return std::abs(part.change); });
    return parts;
}

/// Settings that can touch a category; no others can.
std::vector<std::string_view> settingsOf(std::string_view category) {
    if (category == "kv_cache") {
        return {"kv_dtype", "cache",          "page_size",   "sliding_cache",  "slots",
                "kv_pages", "max_new_tokens", "dtype",       "share_prefixes", "model",
                "batch",    "prefill_chunk",  "token_budget"};
    }
    if (category == "weights") {
        return {"weights", "dtype", "adapter", "model", "method"};
    }
    if (category == "activations" || category == "workspace" || category == "logits") {
        return {"prefill_chunk", "token_budget", "dtype",      "model",           "batch",       "slots",    "kernel",
                "kernel_pack",   "method",       "techniques", "sequence_length", "loss_chunks", "tiled_mlp"};
    }
    return {};
}

/// " (kv_dtype int8)" where one setting that differs can touch the category, else nothing.
std::string settingBehind(const std::vector<SpecDifference>& settings, std::string_view category) {
    const std::vector<std::string_view> able = settingsOf(category);
    const SpecDifference* only = nullptr;
    for (const SpecDifference& row : settings) {
        if (std::ranges::find(able, row.key) == able.end()) {
            continue;
        }
        // A chunk leaves the cache as it is unless the layers keep windows; another type of the cache outweighs it.
        if (only != nullptr && !(category == "kv_cache" && row.key == "prefill_chunk")) {
            return {};
        }
        only = only == nullptr ? &row : only;
    }
    return only == nullptr ? std::string() : fmt::format(" ({} {})", only->key, only->b);
}

std::string sizeText(std::string_view path, double change) {
    const std::string text = signedValueText(path, std::abs(change));
    return text.substr(1); // without its sign
}

class Words {
public:
    Words(const ComparedRun& a, const ComparedRun& b, const std::vector<ResultChange>& results)
        : a_(a), b_(b), results_(results), stop_(a.done && b.done ? earlyStop(a, b) : std::nullopt),
          settings_(diffSettings(a, b)) {
        const auto reasons = whyIncomparable(a, b);
        timesComparable_ = std::ranges::none_of(reasons, [](const Incomparability& reason) {
            return reason.what == Incomparable::Times && reason.planned;
        });
        collect();
    }

    ComparisonWords make() const {
        ComparisonWords words;
        const std::string fate = possibility();
        const std::string stopped = stopWords();
        if (changes_.empty() || changes_.front().weight == 0) {
            words.sentence = !fate.empty()      ? fate + "."
                             : !stopped.empty() ? stopped + "; their rates and peaks are the same within the noise."
                                                : sameWords();
            words.other = partOfWorkSentence(a_, b_);
            words.other += (words.other.empty() || compileWords().empty() ? "" : " ") + compileWords();
            return words;
        }
        const Change& first = fate.empty() ? changes_.front() : peakOrFirst();
        const bool peak = first.candidate->field == &result::kPeakBytes;
        const std::string what = phrase(first);
        const std::string because = peak ? causeOfPeak(first.row->judgement->change) : std::string();
        const std::string start = stopped.empty() ? std::string() : stopped + ", so rates are compared, not totals: ";
        words.sentence = start + (fate.empty() ? fmt::format("B {}", what) : fmt::format("{}; B {}", fate, what)) +
                         (because.empty() ? "" : ": " + because) + ".";
        const auto next = std::ranges::find_if(
            changes_, [&](const Change& change) { return change.row != first.row && change.better != first.better; });
        words.other = next != changes_.end()                ? counterpart(*next)
                      : also(first).empty() && unfinished() ? partOfWorkSentence(a_, b_)
                      : also(first).empty()                 ? "Nothing else changed beyond the noise."
                                                            : also(first);
        if (const std::string compiling = compileWords(); !compiling.empty()) {
            words.other += (words.other.empty() ? "" : " ") + compiling;
        }
        return words;
    }

private:
    /// That nothing that leads a sentence has changed, and what has changed most of the rest.
    std::string sameWords() const {
        const ResultChange* most = nullptr;
        double largest = 0;
        for (const ResultChange& row : results_) {
            const ResultField* field = findResult(row.path);
            const bool counts =
                row.judgement && field != nullptr && !field->each &&
                (row.judgement->verdict == Verdict::Better || row.judgement->verdict == Verdict::Worse) &&
                field->key != result::kKernelCompileSeconds.key && field->key != result::kKernelCompilerSeconds.key &&
                field->key != result::kPrefillCompileSeconds.key &&
                (timesComparable_ || field->unit == ResultUnit::Bytes);
            const double share =
                counts ? std::abs(row.judgement->change) / std::max({std::abs(*row.a), std::abs(*row.b), 1e-300}) : 0;
            if (share > largest) {
                largest = share;
                most = &row;
            }
        }
        const bool small =
            std::ranges::any_of(changes_, [this](const Change& change) { return !isTheWay(*change.candidate); });
        return most == nullptr ? fmt::format("#{} and #{} are the same within the noise.", a_.number, b_.number)
                               : fmt::format("{} the same within the noise; {} changed from {} to {}.",
                                             small ? "The run as a whole is" : "Peak and rates are", most->words,
                                             sizeText(most->path, *most->a), sizeText(most->path, *most->b));
    }

    void collect() {
        for (const Candidate& candidate : kCandidates) {
            const ResultChange* row = rowOf(results_, candidate.field->key);
            if (row == nullptr || !row->judgement || row->judgement->verdict == Verdict::Same ||
                (stop_ && growsWithTokens(row->path)) || (stop_ && isOfTheCache(*row)) ||
                !isOfWholeWork(a_, b_, row->path, *row->a, *row->b) ||
                (!timesComparable_ && candidate.field->unit != ResultUnit::Bytes &&
                 candidate.field->unit != ResultUnit::Count) ||
                (candidate.field == &result::kLoadSeconds && weightsKept()) || (isTheWay(candidate) && isSmall(*row))) {
                continue;
            }
            // Bytes have next to no noise; without a floor a change of some pages would lead every sentence.
            const double larger = std::max({std::abs(*row->a), std::abs(*row->b), 1e-300});
            const double noise = std::max(row->judgement->noise, kUsualNoise * larger);
            const double part = partOfRun(*candidate.field, *row), size = std::abs(row->judgement->change);
            // Twice a prefill of milliseconds is nothing of a long run.
            const bool leads = !isTheWay(candidate) && (part == 1 || part * size > kUsualNoise * larger);
            changes_.push_back(
                {&candidate, row, leads ? part * size / noise : 0, row->judgement->verdict == Verdict::Better});
        }
        std::ranges::stable_sort(changes_, std::greater(), &Change::weight);
    }

    double largerOf(const ResultField& field) const {
        const ResultChange* row = rowOf(results_, field.key);
        return row == nullptr ? 0 : std::max(row->a.value_or(0), row->b.value_or(0));
    }
    double generating() const { return largerOf(result::kPrefillSeconds) + largerOf(result::kDecodeSeconds); }

    /// Which part of the time of generating the time of this result is; 1 where that is not known. Prefill of 3 ms
    /// instead of 2 matters little to a run that decodes for a minute.
    double partOfRun(const ResultField& field, const ResultChange& row) const {
        const double all = generating();
        const double own = &field == &result::kDecodeTokensPerSecond ? largerOf(result::kDecodeSeconds)
                           : field.unit == ResultUnit::Seconds       ? std::max(row.a.value_or(0), row.b.value_or(0))
                                                                     : 0;
        return all > 0 && own > 0 ? std::min(1.0, own / all) : 1;
    }

    /// Loading is what a run of `load` is about. Of a run that does more it is the way there: it leads no sentence.
    bool isTheWay(const Candidate& candidate) const {
        const auto isWork = [&](const Candidate& other) {
            return other.field != &result::kPeakBytes && other.field != &result::kLoadSeconds &&
                   rowOf(results_, other.field->key) != nullptr;
        };
        return candidate.field == &result::kLoadSeconds && std::ranges::any_of(kCandidates, isWork);
    }

    /// Less than a tenth of the run: not worth a word beside the rest.
    bool isSmall(const ResultChange& row) const {
        return std::abs(row.judgement->change) < 0.1 * (generating() + largerOf(result::kLoadSeconds));
    }

    /// A peak that is lower because fewer tokens were cached says nothing of memory.
    bool isOfTheCache(const ResultChange& row) const {
        if (row.path != result::kPeakBytes.key) {
            return false;
        }
        for (const Part& part : partsOfPeak(results_, row.judgement->change)) {
            if (part.name == "kv_cache") {
                return std::abs(part.change) > 0.2 * std::abs(row.judgement->change);
            }
        }
        return false;
    }

    bool weightsKept() const {
        return flagOf(base::parsedObject(a_.metrics), result::kWeightsKept).value_or(false) ||
               flagOf(base::parsedObject(b_.metrics), result::kWeightsKept).value_or(false);
    }

    const Change& peakOrFirst() const {
        const auto peak = std::ranges::find_if(
            changes_, [](const Change& change) { return change.candidate->field == &result::kPeakBytes; });
        return peak == changes_.end() ? changes_.front() : *peak;
    }

    static std::string phrase(const Change& change) {
        const double size = change.row->judgement->change;
        return fmt::format(fmt::runtime(size < 0 ? change.candidate->lower : change.candidate->higher),
                           sizeText(change.row->path, size));
    }

    /// "A ran out of memory and B did not", "B fits 16 GiB and A does not": what decides whether a run is possible.
    std::string possibility() const {
        if (unfinished()) {
            return unfinishedFate(a_, b_);
        }
        const Json left = base::parsedObject(a_.metrics), right = base::parsedObject(b_.metrics);
        const auto fitsA = flagOf(left, result::kFits), fitsB = flagOf(right, result::kFits);
        if (fitsA && fitsB && *fitsA != *fitsB) {
            const auto budget = countOf(*fitsB ? right : left, result::kBudgetBytes);
            return fmt::format("{} fits{}, {} does not", *fitsB ? 'B' : 'A',
                               budget && *budget > 0 ? " " + base::formatBytes(*budget) : "", *fitsB ? 'A' : 'B');
        }
        return {};
    }

    bool unfinished() const { return !a_.done || !b_.done; }

    std::string stopWords() const {
        if (!stop_) {
            return {};
        }
        return fmt::format("{} stopped after {} of {} tokens{}", stop_->isA ? 'A' : 'B',
                           base::formatGrouped(stop_->tokens), base::formatGrouped(stop_->of),
                           stop_->reason.empty() || stop_->reason == "length"
                               ? ""
                               : fmt::format(" ({})", spacedReason(stop_->reason)));
    }

    /// At most two categories that account for four fifths of the change; else nothing.
    std::string causeOfPeak(double change) const {
        std::vector<Part> parts = partsOfPeak(results_, change);
        parts.resize(std::min<std::size_t>(2, parts.size()));
        if (parts.size() == 2 && std::abs(parts[0].change) >= 0.95 * std::abs(change)) {
            parts.pop_back();
        }
        double sum = 0;
        std::vector<std::string> said;
        for (const Part& part : parts) {
            sum += part.change;
            said.push_back(fmt::format("{} {} {}{}", part.name, sizeText(result::kPeakBytes.key, part.change),
                                       change < 0 ? "less" : "more", settingBehind(settings_, part.name)));
        }
        return std::abs(sum) >= 0.8 * std::abs(change) ? fmt::format("{}", fmt::join(said, ", ")) : std::string();
    }

    /// "It costs 1.25 s of prefill, 3.67 s instead of 2.42 s (1.52x)."
    std::string counterpart(const Change& change) const {
        return fmt::format("{}: {} {} instead of {}{}.", change.better ? "It gains" : "It costs", change.row->words,
                           sizeText(change.row->path, *change.row->b), sizeText(change.row->path, *change.row->a),
                           *change.row->a > 0 && *change.row->b > 0
                               ? fmt::format(" ({:.2f}x)", *change.row->b / *change.row->a)
                               : "") +
               clockWords(change);
    }

    std::string clockWords(const Change& change) const {
        const double share = clockShare(a_, b_);
        return change.candidate->field->unit == ResultUnit::Seconds && share > 0.02
                   ? fmt::format(" The other clock explains {} at most.",
                                 sizeText(change.row->path, share * *change.row->a))
                   : std::string();
    }

    /// Nothing went the other way: the next change in the same direction; empty where there is none.
    std::string also(const Change& first) const {
        for (const Change& change : changes_) {
            if (change.row != first.row) {
                return fmt::format("B also {}.", phrase(change)) + clockWords(change);
            }
        }
        return {};
    }

    /// Time of the compiler is no time of the model; it is said where it would have been read as such.
    std::string compileWords() const {
        const ResultChange* row = rowOf(results_, result::kKernelCompileSeconds.key);
        if (row == nullptr || std::abs(row->a.value_or(0) - row->b.value_or(0)) < 0.1) {
            return {};
        }
        const bool b = row->b.value_or(0) > row->a.value_or(0);
        const bool apart = rowOf(results_, result::kPrefillCompileSeconds.key) != nullptr;
        return fmt::format("{} waited {} longer for kernels to compile, which {} in its prefill.", b ? 'B' : 'A',
                           sizeText(row->path, row->b.value_or(0) - row->a.value_or(0)),
                           apart ? "is not counted" : "may be");
    }

    const ComparedRun &a_, &b_;
    const std::vector<ResultChange>& results_;
    std::optional<EarlyStop> stop_;
    std::vector<SpecDifference> settings_;
    bool timesComparable_ = true;
    std::vector<Change> changes_;
};

} // namespace

ComparisonWords comparisonWords(const ComparedRun& a, const ComparedRun& b, const std::vector<ResultChange>& results) {
    if (allIncomparable(whyIncomparable(a, b))) {
        return {incomparableSentence(a, b), {}, {}};
    }
    ComparisonWords words = Words(a, b, results).make();
    words.answers = answerSentence(a, b);
    if (areRepeats(a, b) && !words.sentence.ends_with("are the same within the noise.")) {
        words.other = "Both ran with the same settings, machine and build, so this is how much such runs vary.";
    }
    return words;
}

} // namespace vitrine::engine
