// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// File descriptors and pipes that close themselves.

#include <utility>

namespace vitrine::base {

/// A file descriptor that closes itself.
class Descriptor {
public:
    explicit Descriptor(int value = -1) : value_(value) {}
    ~Descriptor() { reset(); }
    Descriptor(const Descriptor&) = delete; // closes once
    Descriptor& operator=(const Descriptor&) = delete;
    Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    int get() const { return value_; } ///< -1: none
    bool isOpen() const { return value_ >= 0; }
    void reset();

private:
    int value_;
};

/// The two ends of a new pipe, which other programs do not inherit.
struct Pipe {
    Pipe(); ///< throws Internal
    Descriptor read, write;
};

/// From now on reading and writing do not wait. Throws Internal.
void setNonBlocking(const Descriptor& descriptor);

} // namespace vitrine::base
