// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any text is a value or BadInput; a value survives being written and read again.

#include "base/strict_json.h"

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine::base;
    try {
        const nlohmann::json value = parseStrictJson({reinterpret_cast<const char*>(data), size}, "fuzz");
        if (parseStrictJson(value.dump(), "again") != value) {
            std::abort();
        }
    } catch (const BadInput& error) {
        if (error.message().empty()) {
            std::abort();
        }
    }
    return 0;
}
