// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/descriptor.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"

namespace vitrine::base {

void Descriptor::reset() {
    if (value_ >= 0) {
        ::close(std::exchange(value_, -1));
    }
}

Pipe::Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw Internal(fmt::format("a pipe to another process: {}", std::strerror(errno)));
    }
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
}

void setNonBlocking(const Descriptor& descriptor) {
    const int flags = ::fcntl(descriptor.get(), F_GETFL);
    if (flags < 0 || ::fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
        throw Internal(fmt::format("a pipe that does not wait: {}", std::strerror(errno)));
    }
}

} // namespace vitrine::base
