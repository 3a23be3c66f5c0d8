// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Any bytes as what a client sends, in two pieces: the result does not depend on where they are cut.

#include "app/serve/http_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace vitrine::app;

/// Bodies of the requests read, and the status of what is refused.
std::vector<std::string> readAll(const std::string& text, std::size_t cut) {
    HttpReader reader;
    std::vector<std::string> out;
    std::string in;
    try {
        for (const std::string& piece : {text.substr(0, cut), text.substr(cut)}) {
            in += piece;
            for (auto progress = reader.read(in); progress != HttpReader::Progress::NeedsMore;
                 progress = reader.read(in)) {
                if (progress == HttpReader::Progress::Whole) {
                    out.push_back(reader.request().path + " " + reader.request().body);
                    reader.reset();
                }
            }
        }
    } catch (const ApiError& error) {
        if (error.status < 400 || error.message.empty()) {
            __builtin_trap();
        }
        out.push_back("refused");
    }
    return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t cut = text.empty() ? 0 : data[0] % text.size();
    if (readAll(text, cut) != readAll(text, text.size())) {
        __builtin_trap();
    }
    return 0;
}
