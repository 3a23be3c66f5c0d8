// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What runs with a KV cache say of it, for tests of views: full and sliding layers of gpt-oss' kind.

#include <string>

#include "sessions/session_file.h"

namespace vitrine::test {

inline constexpr std::uint64_t kToken = 24576;

inline sessions::RunInfo generateRun(bool geometry, int batch = 1) {
    sessions::RunInfo run;
    run.id = 1;
    run.name = "generate";
    run.workload = "generate";
    run.specJson = R"({"vitrine": 1, "workload": "generate"})";
    run.status = sessions::RunStatus::Done;
    run.metricsJson = geometry ? R"({"batch": )" + std::to_string(batch) +
                                     R"(, "kv_cache": {"dtype": "bfloat16", "kind": "dynamic", "groups": [
        {"name": "sliding", "layers": [0, 2, 4, 6, 8], "window": 128, "bytes_per_token": 24576, "page_tokens": 127},
        {"name": "full", "layers": [1, 3, 5, 7, 9], "window": 0, "bytes_per_token": 24576, "page_tokens": 64}]}})"
                               : "{}";
    return run;
}

} // namespace vitrine::test
