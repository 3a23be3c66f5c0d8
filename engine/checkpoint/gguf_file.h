// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An open GGUF file: its header, and its bytes.

#include <string>

#include "engine/checkpoint/gguf_header.h"
#include "engine/checkpoint/read_file.h"

namespace vitrine::engine {

/// An open GGUF file. Thread-safe reads.
class GgufFile {
public:
    /// Throws what GgufHeader::parse does.
    explicit GgufFile(const std::string& path);
    const GgufHeader& header() const { return header_; }
    const ReadFile& file() const { return file_; }
    /// Whether the file begins as a GGUF file does.
    static bool is(const std::string& path);

private:
    ReadFile file_;
    GgufHeader header_;
};

} // namespace vitrine::engine
