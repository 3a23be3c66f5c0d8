// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any JSON is a canonical experiment or BadInput with one line; a canonical experiment is its own canonical form.

#include "engine/workload/experiment/experiment.h"

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/strict_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    // An option's own text form: the first line names the option.
    const std::size_t line = text.find('\n');
    if (const engine::OptionSpec* option = engine::findOption(text.substr(0, line)); option != nullptr) {
        try {
            engine::parseOption(*option, line == std::string_view::npos ? "" : text.substr(line + 1));
        } catch (const base::BadInput&) {
            return 0;
        }
        return 0;
    }
    try {
        const nlohmann::json canonical =
            engine::Experiment::parse(base::parseStrictJson(text, "fuzz"), "fuzz").toJson();
        if (engine::Experiment::parse(canonical, "again").toJson() != canonical ||
            !engine::diffExperiments(canonical, canonical).empty()) {
            std::abort();
        }
    } catch (const base::BadInput& error) {
        if (error.message().find('\n') != std::string::npos) {
            std::abort();
        }
    } catch (const base::Unsupported&) {
        return 0;
    }
    return 0;
}
