// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any text as a size: bytes that fit 63 bits, or BadInput that names the field. Any numbers as sizes and times: some
// text.

#include "base/units.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine::base;
    try {
        if (parseBytes({reinterpret_cast<const char*>(data), size}, "budget") > std::uint64_t{INT64_MAX}) {
            std::abort();
        }
    } catch (const BadInput& error) {
        if (error.message().rfind("budget", 0) != 0) {
            std::abort();
        }
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, data, size < sizeof bits ? size : sizeof bits);
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    const auto whole = static_cast<std::int64_t>(bits);
    if (formatBytes(bits).empty() || formatGrouped(whole).empty() || formatDuration(whole).empty() ||
        formatBytesPerSecond(number).empty()) {
        std::abort();
    }
    return 0;
}
