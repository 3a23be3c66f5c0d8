// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// SHA-256 (FIPS 180-4): checksums of kernel packs, keys of the cubin cache.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine::base {

class Sha256 {
public:
    void add(std::string_view bytes);
    /// The digest of everything added. The object must not be used again.
    std::array<std::uint8_t, 32> digest();
    /// The digest as 64 lower-case hexadecimal digits. The object must not be used again.
    std::string hex();

private:
    void block(const std::uint8_t* data);

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::uint8_t, 64> waiting_{};
    std::uint64_t length_ = 0; ///< bytes added
};

std::string sha256Hex(std::string_view bytes);

} // namespace vitrine::base
