// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// One packed weight of a checkpoint, as packed_weight_input.h describes it: numbers come of it, or BadInput or
// Unsupported of one line, and no more memory than four times the file is held. Seeds: tests/fixtures/packed-weights.

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sanitizer/allocator_interface.h>

#include "base/error.h"
#include "base/log.h"
#include "tests/fuzz/packed_weight_input.h"

namespace {

namespace base = vitrine::base;
namespace test = vitrine::engine::test;

/// Bytes that the program holds beyond those that it held when an input began.
std::int64_t heldBytes = 0;
std::int64_t peakBytes = 0;

void countAllocation(const volatile void*, std::size_t bytes) {
    heldBytes += static_cast<std::int64_t>(bytes);
    peakBytes = std::max(peakBytes, heldBytes);
}

void countFree(const volatile void* address) {
    if (address != nullptr) {
        heldBytes -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(address));
    }
}

void requireOneLine(const base::Error& error) {
    const bool inputsFault = error.kind() == base::ErrorKind::BadInput || error.kind() == base::ErrorKind::Unsupported;
    const bool control = std::ranges::any_of(error.message(), [](unsigned char c) { return std::iscntrl(c) != 0; });
    constexpr std::size_t kLongest = 2000;
    if (!inputsFault || control || error.message().empty() || error.message().size() > kLongest) {
        std::abort();
    }
}

void requireLittleMemory(std::uint64_t fileBytes) {
    constexpr std::int64_t kConstant = std::int64_t{2} << 20; // the model around the weight, and JSON as values
    if (peakBytes > static_cast<std::int64_t>(4 * fileBytes) + kConstant) {
        std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    base::setLogLevel(base::LogLevel::Error); // tensors that nobody needs are warnings
    return __sanitizer_install_malloc_and_free_hooks(countAllocation, countFree) > 0 ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto input = test::packedWeightInput({data, size});
    if (!input) {
        return 0;
    }
    heldBytes = peakBytes = 0;
    try {
        test::readPackedWeight(*input);
    } catch (const base::Error& error) {
        requireOneLine(error);
    }
    requireLittleMemory(input->fileBytes);
    return 0;
}
