// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench profiling: what a profile costs, as step times over those without one.
//
// One model and one set of graphs: graphs that are made apart differ in speed by more than what is looked for. Rounds
// without a profile, with a light and with a full one take turns, so that clocks and neighbours change for all alike.
// On a GPU the profilers look closely at the first profile_window decode steps of each profile_every; a round holds one
// such period after the window that it begins with.
//
// light, full: the mean step of a whole period, its window included; inside: the mean in the window with the step
// before it, which pays for the switch; outside: the mean of the others; each over the same of the rounds without a
// profile, medians of rounds. Prefill: the time until the first token.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "engine/workload/bench/bench.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::array kBatches = {1, 16};
constexpr std::int64_t kRounds = 3;          ///< at least
constexpr std::int64_t kPrefillsOfRound = 2; ///< of a round
constexpr std::array kLevels = {"off", "light", "full"};
// Times of a step with a profile over those without.
constexpr double kMostOutside = 1.02;
constexpr double kMostInsideAlone = 1.40; ///< every kernel is traced; one request
constexpr double kMostInside = 1.15;      ///< a batch, and prefill

/// Mean seconds of a step, of each round of one level.
struct Level {
    std::vector<double> period, inside, outside;
};

class ProfilingBench {
public:
    ProfilingBench(const Run& run, const ModelSource& source, kernels::Context& context)
        : run_(run), context_(context),
          model_(context, source, modelOptions(run, context, run.spec.text("weights")), run.sinks.progress),
          options_(generateOptions(run, model_.options())),
          window_(std::max<std::int64_t>(run.spec.integer("profile_window"), 1)),
          period_(std::max(run.spec.integer("profile_every"), window_ + 4)), rounds_(std::max(run.repeats(), kRounds)) {
    }

    void decode(std::int64_t batch, std::int64_t context) {
        const std::string name = fmt::format("decode batch {}", batch);
        say(name);
        options_.priorTokens = std::max<std::int64_t>(0, context - period_ / 2);
        options_.priorSeed = run_.seed();
        std::array<Level, kLevels.size()> levels;
        Level first;
        under("full", [&] { decodeRound(batch, first); }); // compiles, captures
        everyRound([&](std::size_t level) { decodeRound(batch, levels[level]); });
        const Level& off = levels[0];
        rows_.push_back(benchRow(name + ", off", 1e6 * median(off.period), "us"));
        addRow(name + ", light", median(levels[1].period), median(off.period), kMostOutside);
        rows_.back()["inside"] = median(levels[1].inside) / median(off.inside);
        rows_.back()["outside"] = median(levels[1].outside) / median(off.outside);
        addRow(name + ", full inside a window", median(levels[2].inside), median(off.inside),
               batch == 1 ? kMostInsideAlone : kMostInside);
        addRow(name + ", full outside", median(levels[2].outside), median(off.outside), kMostOutside);
        addRow(name + ", full", median(levels[2].period), median(off.period), 0);
    }

    void prefill(std::int64_t tokens) {
        const std::string name = fmt::format("prefill {}", tokens);
        say(name);
        options_.priorTokens = 0;
        std::array<std::vector<double>, kLevels.size()> seconds;
        std::vector<double> first;
        under("full", [&] { prefillRound(tokens, first); });
        everyRound([&](std::size_t level) { prefillRound(tokens, seconds[level]); });
        rows_.push_back(benchRow(name + ", off", 1e6 * median(seconds[0]), "us"));
        addRow(name + ", light", median(seconds[1]), median(seconds[0]), kMostOutside);
        addRow(name + ", full", median(seconds[2]), median(seconds[0]), kMostInside);
    }

    Json takeRows() {
        rows_.push_back(benchRow("lost records", static_cast<double>(lost_), ""));
        return std::move(rows_);
    }

private:
    void say(const std::string& name) const {
        context_.throwIfStopped();
        if (run_.sinks.progress != nullptr) {
            run_.sinks.progress->progress("Measuring " + name, 0, 0);
        }
    }

    void addRow(const std::string& name, double seconds, double off, double most) {
        rows_.push_back(benchRow(name, off > 0 ? seconds / off : 0, "times off", most));
        rows_.back()["step_seconds"] = seconds;
        rows_.back()["off_seconds"] = off;
    }

    template <class Measure> void everyRound(const Measure& measure) {
        for (std::int64_t round = 0; round < rounds_; ++round) {
            for (std::size_t i = 0; i < kLevels.size(); ++i) {
                under(kLevels[i], [&] { measure(i); });
            }
        }
    }

    /// Measures while the level's profile is on.
    template <class Measure> void under(const std::string& level, const Measure& measure) {
        ProfileSwitch& profiles = *run_.sinks.profiles;
        if (level == "off") {
            measure();
            return;
        }
        const Profile profile(*this, level);
        // What holds from before the profile: the profilers start when they hear of it.
        context_.tracer().counter("reserved_bytes", static_cast<double>(context_.memory().statistics().reserved));
        profiles.settle();
        measure();
    }

    void decodeRound(std::int64_t batch, Level& level) {
        std::vector<base::TimeNs> times;
        GenerateReport report;
        Generator(model_, nullptr, options_)
            .run(someRequests(model_.config(), batch, 1, period_ + window_ + 2), report,
                 [&](const GeneratedToken& token) {
                     if (token.request == 0) {
                         times.push_back(token.time);
                     }
                 });
        std::vector<double> steps; // by their number, on which windows depend
        for (std::size_t i = 1; i < times.size(); ++i) {
            steps.push_back(static_cast<double>(times[i] - times[i - 1]) * 1e-9);
        }
        const auto mean = [&steps](std::int64_t begin, std::int64_t end) {
            return std::accumulate(steps.begin() + begin, steps.begin() + end, 0.0) / static_cast<double>(end - begin);
        };
        level.period.push_back(mean(window_, period_ + window_));
        level.inside.push_back(mean(period_ - 1, period_ + window_));
        level.outside.push_back(mean(window_ + 1, period_ - 1));
    }

    void prefillRound(std::int64_t tokens, std::vector<double>& seconds) {
        for (std::int64_t i = 0; i < kPrefillsOfRound; ++i) {
            GenerateReport report;
            Generator(model_, nullptr, options_).run(someRequests(model_.config(), 1, tokens, 1), report, {});
            seconds.push_back(report.prefillSeconds);
        }
    }

    void trace(base::TraceSink& sink, kernels::ProfileLevel level) {
        context_.runTrace().restart(sink);
        context_.tracer().restart(level);
    }

    /// A profile that is on while it lives.
    class Profile {
    public:
        Profile(ProfilingBench& bench, const std::string& level) : bench_(bench) {
            base::TraceSink& sink = bench_.run_.sinks.profiles->begin(level);
            bench_.trace(sink, level == "full" ? kernels::ProfileLevel::Full : kernels::ProfileLevel::Light);
        }
        ~Profile() {
            bench_.trace(bench_.nothing_, kernels::ProfileLevel::Off);
            try {
                bench_.lost_ += bench_.run_.sinks.profiles->end();
            } catch (const std::exception& error) {
                base::logWarning(fmt::format("the end of a profile: {}", error.what()));
            }
        }
        Profile(const Profile&) = delete; // one begin, one end
        Profile& operator=(const Profile&) = delete;

    private:
        ProfilingBench& bench_;
    };

    const Run& run_;
    kernels::Context& context_;
    base::NullTraceSink nothing_;
    Model model_;
    GenerateOptions options_;
    std::int64_t window_, period_, rounds_;
    std::uint64_t lost_ = 0;
    Json rows_ = Json::array();
};

} // namespace

void benchProfiling(const Run& run) {
    if (run.sinks.profiles == nullptr) {
        throw base::Unsupported("bench: profiling needs the profilers of the vitrine program");
    }
    Json& metrics = run.metrics;
    const std::vector<std::int64_t> contexts = numbersOption(run, "contexts");
    const std::vector<std::int64_t> prompts = numbersOption(run, "prompt_lengths");
    const ModelSource source = openSource(run);
    Experiment spec = run.spec;
    spec.set("profile", "off"); // rounds turn theirs on
    WorkloadSinks sinks = run.sinks;
    sinks.trace = nullptr;
    const Run quiet{spec, sinks, run.stop, metrics};
    // A graph that is made before the profilers know the device could not be traced: they come first.
    sinks.profiles->begin("full");
    sinks.profiles->end();
    const RunDevices context = makeContext(quiet);
    if (context->can().virtualTime) {
        throw base::Unsupported("backend: profiling measures real time; use cpu or cuda");
    }
    addContextMetrics(quiet, *context);
    ProfilingBench bench(quiet, source, *context);
    if (!contexts.empty()) {
        for (const std::int64_t batch : kBatches) {
            bench.decode(batch, contexts.front());
        }
    }
    if (!prompts.empty()) {
        bench.prefill(prompts.back());
    }
    addMemoryMetrics(metrics, *context);
    metrics[result::kRows.key] = bench.takeRows();
}

} // namespace vitrine::engine
