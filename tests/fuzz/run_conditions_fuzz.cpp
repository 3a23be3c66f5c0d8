// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any text as a condition of `session compare --fail-if`: a condition with a finite limit, or BadInput that names the
// option.

#include "app/runner/runs/run_conditions.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine;
    try {
        const app::RunCondition condition =
            app::parseCondition(std::string(reinterpret_cast<const char*>(data), size), {});
        if (!std::isfinite(condition.limit) || condition.path.empty()) {
            std::abort();
        }
    } catch (const base::BadInput& error) {
        if (error.message().rfind("--fail-if: ", 0) != 0) {
            std::abort();
        }
    }
    return 0;
}
