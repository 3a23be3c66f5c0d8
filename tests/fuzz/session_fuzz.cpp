// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any bytes as a session file: it opens or it is BadInput, and the file stays as it was.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

#include "base/error.h"
#include "sessions/session_file.h"

namespace {

using namespace vitrine;

void readEverything(const sessions::SessionFile& session) {
    for (const sessions::RunInfo& run : session.runs()) {
        session.texts(run.id);
        session.timelineNotes(run.id);
        for (const std::string& name : session.images(run.id)) {
            session.image(run.id, name);
        }
        for (const std::string& stream : session.streams(run.id)) {
            session.chunks(run.id, stream);
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::string kPath = "/tmp/session-fuzz-" + std::to_string(::getpid()) + ".vitrine";
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
        std::remove((kPath + beside).c_str());
    }
    std::ofstream(kPath, std::ios::binary) << bytes;
    bool bad = false;
    try {
        readEverything(*sessions::SessionFile::open(kPath, sessions::OpenMode::ReadOnly));
    } catch (const base::BadInput&) {
        bad = true;
    }
    std::ifstream file(kPath, std::ios::binary);
    const std::string after((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (bad && after != bytes) {
        std::abort();
    }
    std::remove(kPath.c_str());
    return 0;
}
