// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/run_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

enum class SurroundingUnit : std::uint8_t { Text, Hertz, Watts, Bytes };
struct Surrounding {
    std::string_view key, words;
    SurroundingUnit unit = SurroundingUnit::Text;
    bool timed = false; ///< another value makes times incomparable
};

/// In the order of lists. A path goes into objects.
constexpr std::array<Surrounding, 14> kSurroundings{{
    {"program", "program", SurroundingUnit::Text, true},
    {"commit", "commit"}, // it is what one compares
    {"command_line", "command line"},
    {"model_hash", "files of the model"},
    {"host", "host"},
    {"os", "system"},
    {"cpu", "processor", SurroundingUnit::Text, true},
    {"cores", "cores", SurroundingUnit::Text, true},
    {"device.name", "device"},
    {"driver_version", "driver version", SurroundingUnit::Text, true},
    {"cuda_version", "CUDA version", SurroundingUnit::Text, true},
    {"sm_clock_hz", "clock", SurroundingUnit::Hertz},
    {"sm_clock_max_hz", "highest clock", SurroundingUnit::Hertz, true},
    {"power_limit_watts", "power limit", SurroundingUnit::Watts, true},
}};

const Json* at(const Json& object, std::string_view path) {
    return valueOf(object, ResultField{path});
}

std::string surroundingText(const Surrounding& row, const Json* value) {
    if (value == nullptr || value->is_null()) {
        return "–";
    }
    if (value->is_number()) {
        const auto number = value->get<double>();
        switch (row.unit) {
        case SurroundingUnit::Hertz:
            return fmt::format("{} MHz", base::formatGrouped(std::llround(number * 1e-6)));
        case SurroundingUnit::Watts:
            return fmt::format("{:.0f} W", number);
        default:
            return fmt::format("{}", number);
        }
    }
    return value->is_string() ? value->get<std::string>() : value->dump();
}

bool isUnknown(const Json* value) {
    return value == nullptr || value->is_null() || *value == "unknown";
}

/// "prompt of 65,536 tokens": what the run was given.
std::optional<std::int64_t> promptTokens(const Json& metrics) {
    const auto tokens = numberOf(metrics, result::kPromptTokens);
    return tokens ? std::optional(static_cast<std::int64_t>(*tokens)) : std::nullopt;
}

std::string deviceOf(const Json& environment) {
    const Json* name = at(environment, "device.name");
    return name != nullptr && name->is_string() ? name->get<std::string>() : std::string();
}

/// Words of a command line that are no option of the experiment and name no place for the result: what is left of it
/// after "Set differently" has said the rest. Sorted, because the order of options means nothing.
std::vector<std::string> otherOptions(const Json* line) {
    static constexpr std::array<std::string_view, 8> kSaidElsewhere{"--session", "--spec", "--set", "--json",
                                                                    "--verbose", "-v",     "-vv",   "--dump-spec"};
    std::vector<std::string> options;
    std::istringstream words(line != nullptr && line->is_string() ? line->get<std::string>() : std::string());
    bool kept = false; // the option that the next words belong to
    for (std::string word; words >> word;) {
        if (!word.starts_with('-')) {
            if (kept) {
                options.back() += ' ' + word;
            }
            continue;
        }
        const std::string name = word.substr(0, word.find('='));
        std::string key = name.substr(std::min<std::size_t>(2, name.size()));
        std::ranges::replace(key, '-', '_');
        kept = name.starts_with("--") && findOption(key) == nullptr &&
               std::ranges::find(kSaidElsewhere, name) == kSaidElsewhere.end();
        if (kept) {
            options.push_back(word);
        }
    }
    std::ranges::sort(options);
    return options;
}

/// Whether two values of the surroundings differ in what matters. A session's path, or a setting, is no surrounding.
bool differs(const Surrounding& row, const Json* x, const Json* y) {
    return row.key == "command_line" ? otherOptions(x) != otherOptions(y)
                                     : surroundingText(row, x) != surroundingText(row, y);
}

/// The clock at the end of the work is known later than the rest, so it stands among the metrics.
Json surroundingsOf(const ComparedRun& run) {
    Json environment = base::parsedObject(run.environment);
    const Json metrics = base::parsedObject(run.metrics);
    if (const Json* clock = valueOf(metrics, result::kSmClockHz)) {
        environment[result::kSmClockHz.key] = *clock;
    }
    return environment;
}

/// The settings of a run as they were given, and with its files named by where they are now.
struct Settings {
    explicit Settings(const ComparedRun& run)
        : spec(base::parsedObject(run.spec)), found(run.foundSpec.empty() ? spec : base::parsedObject(run.foundSpec)) {}
    Json spec, found;
};

bool sameSetting(const Settings& a, const Settings& b, std::string_view key) {
    const auto same = [key = std::string(key)](const Json& x, const Json& y) {
        return x.value(key, Json()) == y.value(key, Json());
    };
    return same(a.spec, b.spec) || same(a.found, b.found);
}

/// Everything that is read of a run, once.
struct Read : Settings {
    explicit Read(const ComparedRun& run)
        : Settings(run), number(run.number), environment(surroundingsOf(run)),
          metrics(base::parsedObject(run.metrics)) {}
    std::int64_t number;
    Json environment, metrics;

    std::string text(const char* key) const { return base::textAt(spec, key); }
    bool planned() const {
        return base::textAt(environment, "time_base") == "virtual" || spec.value("plan", Json()) == true ||
               base::textAt(environment, "backend") == "meta";
    }
    std::string kind() const { return base::textAt(environment, "backend"); }
};

/// Keys of the experiment that say what a run had to do.
constexpr std::array<std::string_view, 14> kTraceKeys{
    "prompt", "tokens",   "tokens_file", "prompt_length", "prompt_tokens", "prompt_lengths", "trace",
    "data",   "requests", "new_tokens",  "rate",          "random",        "system",         "scenarios"};
constexpr std::array<std::string_view, 5> kSamplingKeys{"temperature", "top_k", "top_p", "min_p", "seed"};

void addAll(std::vector<Incomparability>& out, const Read& a, const Read& b) {
    const auto add = [&](std::string why) { out.push_back({Incomparable::All, std::move(why), false}); };
    if (a.text("workload") != b.text("workload")) {
        add(fmt::format("#{} is a run of {}, #{} of {}", a.number, a.text("workload"), b.number, b.text("workload")));
        return;
    }
    if (!sameSetting(a, b, "model")) {
        add(fmt::format("#{} has the model {}, #{} {}", a.number, a.text("model"), b.number, b.text("model")));
    }
    const auto tokensA = promptTokens(a.metrics), tokensB = promptTokens(b.metrics);
    if (tokensA && tokensB && *tokensA != *tokensB) {
        add(fmt::format("#{} has a prompt of {} tokens, #{} one of {}", a.number, base::formatGrouped(*tokensA),
                        b.number, base::formatGrouped(*tokensB)));
    } else {
        for (const std::string_view key : kTraceKeys) {
            if (!sameSetting(a, b, key)) {
                add(fmt::format("#{} and #{} had other work: {} differs", a.number, b.number, key));
                break;
            }
        }
    }
    const Json *idA = at(a.environment, "device.id"), *idB = at(b.environment, "device.id");
    // A plan names a card as its profile does, a run as the driver does.
    const bool sameProfile = idA != nullptr && idB != nullptr && *idA == *idB && *idA != "cuda";
    const std::string deviceA = deviceOf(a.environment), deviceB = deviceOf(b.environment);
    if (a.planned() == b.planned() && !a.kind().empty() && !b.kind().empty() && a.kind() != b.kind()) {
        add(fmt::format("#{} ran on {}, #{} on {}", a.number, a.kind(), b.number, b.kind()));
    } else if (!deviceA.empty() && !deviceB.empty() && deviceA != deviceB && !sameProfile) {
        add(fmt::format("#{} {} the {}, #{} {} the {}", a.number, a.planned() ? "is planned for" : "ran on", deviceA,
                        b.number, b.planned() ? "is planned for" : "ran on", deviceB));
    }
}

void addTimes(std::vector<Incomparability>& out, const ComparedRun& first, const ComparedRun& second, const Read& a,
              const Read& b) {
    std::vector<std::string> reasons;
    if (a.planned() != b.planned()) {
        reasons.push_back(fmt::format("those of #{} are planned", a.planned() ? a.number : b.number));
    } else if (!a.planned()) {
        const double share = clockShare(first, second);
        if (share > 0.02) {
            const Surrounding& clock = kSurroundings[11];
            reasons.push_back(fmt::format("closer than {:.1f} %: #{} at {}, #{} at {}", share * 100, b.number,
                                          surroundingText(clock, at(b.environment, clock.key)), a.number,
                                          surroundingText(clock, at(a.environment, clock.key))));
        }
        for (const Surrounding& row : kSurroundings) {
            const Json *x = at(a.environment, row.key), *y = at(b.environment, row.key);
            if (row.timed && !isUnknown(x) && !isUnknown(y) && *x != *y) {
                reasons.push_back(fmt::format("other {}", row.words));
            }
        }
    }
    if (!reasons.empty()) {
        out.push_back({Incomparable::Times, fmt::format("{}", fmt::join(reasons, ", ")), a.planned() != b.planned()});
    }
}

void addAnswers(std::vector<Incomparability>& out, const Read& a, const Read& b) {
    std::vector<std::string> others;
    for (const std::string_view key : kSamplingKeys) {
        if (!sameSetting(a, b, key)) {
            others.emplace_back(key);
        }
    }
    const Json *x = at(a.environment, "model_hash"), *y = at(b.environment, "model_hash");
    if (!isUnknown(x) && !isUnknown(y) && *x != *y) {
        others.emplace_back("files of the model");
    }
    if (!others.empty()) {
        out.push_back({Incomparable::Answers, fmt::format("other {}", fmt::join(others, ", ")), false});
    }
}

} // namespace

bool allIncomparable(const std::vector<Incomparability>& reasons) {
    return !reasons.empty() && reasons.front().what == Incomparable::All;
}

std::vector<Incomparability> whyIncomparable(const ComparedRun& a, const ComparedRun& b) {
    const Read left(a), right(b);
    std::vector<Incomparability> out;
    addAll(out, left, right);
    if (out.empty()) {
        addTimes(out, a, b, left, right);
        addAnswers(out, left, right);
    }
    return out;
}

std::string incomparableSentence(const ComparedRun& a, const ComparedRun& b) {
    const auto reasons = whyIncomparable(a, b);
    if (reasons.empty()) {
        return {};
    }
    std::vector<std::string> parts;
    parts.reserve(reasons.size());
    for (const Incomparability& reason : reasons) {
        parts.push_back(reason.what == Incomparable::All     ? reason.why
                        : reason.what == Incomparable::Times ? fmt::format("times ({})", reason.why)
                                                             : fmt::format("answers ({})", reason.why));
    }
    return allIncomparable(reasons)
               ? fmt::format("#{} and #{} cannot be compared: {}.", a.number, b.number, fmt::join(parts, "; "))
               : fmt::format("Not comparable: {}.", fmt::join(parts, "; "));
}

std::vector<SurroundingDifference> allSurroundings(const ComparedRun& a, const ComparedRun& b) {
    const Json left = surroundingsOf(a), right = surroundingsOf(b);
    std::vector<SurroundingDifference> out;
    for (const Surrounding& row : kSurroundings) {
        const Json *x = at(left, row.key), *y = at(right, row.key);
        if (x != nullptr || y != nullptr) {
            out.push_back({std::string(row.key), std::string(row.words), surroundingText(row, x),
                           surroundingText(row, y), differs(row, x, y)});
        }
    }
    return out;
}

std::vector<SurroundingDifference> diffSurroundings(const ComparedRun& a, const ComparedRun& b) {
    std::vector<SurroundingDifference> out = allSurroundings(a, b);
    std::erase_if(out, [](const SurroundingDifference& row) { return !row.differs; });
    return out;
}

std::vector<SpecDifference> diffSettings(const ComparedRun& a, const ComparedRun& b) {
    const Settings left(a), right(b);
    std::vector<SpecDifference> out = diffExperiments(left.spec, right.spec);
    std::erase_if(out, [&](const SpecDifference& row) { return sameSetting(left, right, row.key); });
    return out;
}

bool areRepeats(const ComparedRun& a, const ComparedRun& b) {
    // How often one measures changes nothing of what is measured.
    const auto differs = [](const SpecDifference& row) { return row.key != "repeat"; };
    if (!a.done || !b.done || std::ranges::any_of(diffSettings(a, b), differs)) {
        return false;
    }
    const Json left = base::parsedObject(a.environment), right = base::parsedObject(b.environment);
    return std::ranges::all_of(std::array<const char*, 5>{"cpu", "device", "program", "commit", "model_hash"},
                               [&](const char* key) { return left.value(key, Json()) == right.value(key, Json()); });
}

double clockShare(const ComparedRun& a, const ComparedRun& b) {
    const auto x = base::numberAt(surroundingsOf(a), "sm_clock_hz"),
               y = base::numberAt(surroundingsOf(b), "sm_clock_hz");
    return x && y && *x > 0 && *y > 0 ? std::abs(*x / *y - 1) : 0;
}

std::optional<EarlyStop> earlyStop(const ComparedRun& a, const ComparedRun& b) {
    const Read left(a), right(b);
    const auto x = numberOf(left.metrics, result::kGeneratedTokens),
               y = numberOf(right.metrics, result::kGeneratedTokens);
    if (!x || !y || *x == *y || !sameSetting(left, right, "max_new_tokens")) {
        return std::nullopt;
    }
    EarlyStop stop;
    stop.isA = *x < *y;
    const Read& early = stop.isA ? left : right;
    stop.tokens = static_cast<std::int64_t>(std::min(*x, *y));
    const Json limit = early.spec.value("max_new_tokens", Json());
    stop.of = std::max(static_cast<std::int64_t>(std::max(*x, *y)),
                       limit.is_number_integer() ? limit.get<std::int64_t>() : 0);
    stop.reason = textOf(early.metrics, result::kFinishReason);
    return stop;
}

} // namespace vitrine::engine
