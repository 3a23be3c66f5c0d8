// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Text of a template's value, together with where each of its bytes comes from. So a prompt knows which of its letters
// a user wrote: these never become control tokens. It also knows which of them an answer of the assistant is made of.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine::jinja {

/// Where a byte comes from: 0 is the template itself, kInput an input that is no message (tools, documents), and
/// kFirstMessage + N the message N. kGenerated may be added: the byte stands in a block of {% generation %}.
using Origin = std::uint32_t;
inline constexpr Origin kTemplate = 0, kInput = 1, kFirstMessage = 2;
inline constexpr Origin kGenerated = Origin{1} << 31;

/// UTF-8 with an origin for each byte. Positions and lengths are bytes.
class Text {
public:
    Text() = default;
    explicit Text(std::string bytes, Origin origin = kTemplate);

    const std::string& bytes() const { return bytes_; }
    std::size_t size() const { return bytes_.size(); }
    bool empty() const { return bytes_.empty(); }
    Origin originAt(std::size_t position) const { return origins_.empty() ? kTemplate : origins_[position]; }
    /// Origins of all bytes; empty: all come from the template.
    const std::vector<Origin>& origins() const { return origins_; }

    void append(const Text& other) { append(other, 0, other.size()); }
    void append(const Text& other, std::size_t begin, std::size_t end);
    void append(std::string_view bytes, Origin origin = kTemplate);
    Text part(std::size_t begin, std::size_t end) const;
    /// Adds kGenerated to all bytes.
    void markGenerated();

private:
    std::string bytes_;
    std::vector<Origin> origins_;
};

} // namespace vitrine::engine::jinja
