// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/sqlite/file_check.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <sqlite3.h>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include "base/error.h"
#include "sessions/sqlite/migrations.h"

namespace vitrine::sessions {

namespace {

// SQLite's header, all numbers big-endian:
//    0  16 bytes "SQLite format 3\0"
//   16  u16 page size, 1 means 65536        18 u8 write version, 19 u8 read version (1 journal, 2 WAL)
//   21  u8 64, u8 32, u8 32                 24 u32 change counter      28 u32 pages in the file
//   44  u32 schema format, to 4
//   60  u32 user_version                    68 u32 application_id      92 u32 change counter for which 28 holds
constexpr std::size_t kHeaderBytes = 100;
constexpr std::uint32_t kNewestSchemaFormat = 4;
constexpr std::string_view kMagic("SQLite format 3\0", 16);

struct FreeFilename {
    void operator()(char* name) const noexcept { sqlite3_free_filename(name); }
};

/// One file opened by SQLite's own file layer.
class VfsFile {
public:
    explicit VfsFile(const std::string& path) : path_(path) {
        sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
        if (vfs == nullptr) {
            throw base::Internal("SQLite has no file layer");
        }
        std::vector<char> full(static_cast<std::size_t>(vfs->mxPathname) + 1);
        const int resolved = vfs->xFullPathname(vfs, path.c_str(), static_cast<int>(full.size()), full.data());
        if ((resolved & 0xff) != SQLITE_OK) {
            throwSqliteError(SQLITE_CANTOPEN, path_, sqlite3_errstr(resolved));
        }
        name_.reset(const_cast<char*>(sqlite3_create_filename(full.data(), "", "", 0, nullptr)));
        storage_.resize((static_cast<std::size_t>(vfs->szOsFile) + sizeof(std::max_align_t) - 1) /
                        sizeof(std::max_align_t));
        int flags = 0;
        const int code = vfs->xOpen(vfs, name_.get(), file(), SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB, &flags);
        if (code != SQLITE_OK) {
            throwSqliteError(code, path_, std::strerror(errno));
        }
    }
    ~VfsFile() {
        if (file()->pMethods != nullptr) {
            file()->pMethods->xClose(file());
        }
    }
    VfsFile(const VfsFile&) = delete; // owns an open file
    VfsFile& operator=(const VfsFile&) = delete;

    std::string resolvedName() const { return name_.get(); }

    std::uint64_t size() {
        sqlite3_int64 bytes = 0;
        const int code = file()->pMethods->xFileSize(file(), &bytes);
        if (code != SQLITE_OK) {
            throwSqliteError(code, path_, sqlite3_errstr(code));
        }
        return static_cast<std::uint64_t>(bytes);
    }
    /// Bytes past the end read as zeros.
    std::array<unsigned char, kHeaderBytes> header() {
        std::array<unsigned char, kHeaderBytes> bytes{};
        const int code = file()->pMethods->xRead(file(), bytes.data(), static_cast<int>(bytes.size()), 0);
        if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) {
            throwSqliteError(code, path_, sqlite3_errstr(code));
        }
        return bytes;
    }

private:
    sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(storage_.data()); }

    std::string path_;
    std::unique_ptr<char, FreeFilename> name_;
    std::vector<std::max_align_t> storage_;
};

std::uint32_t bigEndian32(const std::array<unsigned char, kHeaderBytes>& bytes, std::size_t at) {
    return (std::uint32_t{bytes[at]} << 24) | (std::uint32_t{bytes[at + 1]} << 16) |
           (std::uint32_t{bytes[at + 2]} << 8) | std::uint32_t{bytes[at + 3]};
}

std::uint32_t readPageSize(const std::array<unsigned char, kHeaderBytes>& bytes, const std::string& path) {
    std::uint32_t size = (std::uint32_t{bytes[16]} << 8) | bytes[17];
    size = size == 1 ? 65536 : size;
    if (size < 512 || (size & (size - 1)) != 0) {
        throw base::BadInput(
            fmt::format("{}: damaged header (page size {}); restore the file from a copy", path, size));
    }
    return size;
}

bool hasContent(const std::string& path) {
    struct stat facts{};
    return ::stat(path.c_str(), &facts) == 0 && facts.st_size > 0;
}

/// A file without a log or journal must be as long as its header says; with one, SQLite itself knows.
bool hasAllPages(const FileHeader& facts, const std::array<unsigned char, kHeaderBytes>& bytes) {
    if (facts.walFile || facts.journal) {
        return true;
    }
    const bool countHolds = bigEndian32(bytes, 24) == bigEndian32(bytes, 92) && bigEndian32(bytes, 28) > 0;
    const std::uint64_t expected = countHolds ? std::uint64_t{bigEndian32(bytes, 28)} * facts.pageSize : facts.pageSize;
    return facts.bytes >= expected && facts.bytes % facts.pageSize == 0;
}

} // namespace

bool sessionFileExists(const std::string& path) {
    struct stat facts{};
    if (::stat(path.c_str(), &facts) != 0) {
        if (errno == ENOENT) {
            return false;
        }
        throw base::BadInput(fmt::format("{}: cannot be read ({})", path, std::strerror(errno)));
    }
    if (!S_ISREG(facts.st_mode)) {
        throw base::BadInput(fmt::format("{}: not a file; name a .vitrine session file", path));
    }
    return true;
}

FileHeader checkSessionFile(const std::string& path) {
    // A writer may be between two states of the file (its log just merged): look again before calling it cut off.
    constexpr int kLooks = 5;
    for (int look = 1;; ++look) {
        VfsFile file(path);
        FileHeader facts;
        facts.bytes = file.size();
        const auto bytes = file.header();
        if (facts.bytes == 0) {
            throw base::BadInput(
                fmt::format("{}: the file is empty, not a Vitrine session; delete it or name another", path));
        }
        const std::string_view magic(reinterpret_cast<const char*>(bytes.data()), kMagic.size());
        const std::size_t comparable = std::min<std::size_t>(facts.bytes, kMagic.size());
        if (magic.substr(0, comparable) != kMagic.substr(0, comparable)) {
            throw base::BadInput(fmt::format("{}: not a Vitrine session file", path));
        }
        if (facts.bytes < kHeaderBytes) {
            throw base::BadInput(
                fmt::format("{}: cut off after {} bytes; restore the file from a copy", path, facts.bytes));
        }
        facts.pageSize = readPageSize(bytes, path);
        if (bigEndian32(bytes, 68) != kApplicationId) {
            throw base::BadInput(
                fmt::format("{}: an SQLite database of another program, not a Vitrine session file", path));
        }
        if (bytes[18] > 2 || bytes[19] > 2 || bytes[18] == 0 || bytes[19] == 0 || bytes[21] != 64 || bytes[22] != 32 ||
            bytes[23] != 32 || bigEndian32(bytes, 44) > kNewestSchemaFormat) {
            throw base::BadInput(fmt::format("{}: damaged header; restore the file from a copy", path));
        }
        facts.version = static_cast<std::int32_t>(bigEndian32(bytes, 60));
        if (facts.version < 0) {
            throw base::BadInput(
                fmt::format("{}: damaged header (version {}); restore the file from a copy", path, facts.version));
        }
        if (facts.version > formatVersion()) {
            throw base::BadInput(
                fmt::format("{}: session format {} is newer than this program knows ({}); update Vitrine", path,
                            facts.version, formatVersion()));
        }
        facts.wal = bytes[19] == 2;
        facts.walFile = hasContent(file.resolvedName() + "-wal");
        facts.journal = hasContent(file.resolvedName() + "-journal");
        if (hasAllPages(facts, bytes)) {
            return facts;
        }
        if (look == kLooks) {
            throw base::BadInput(
                fmt::format("{}: cut off: it has {} bytes and its header promises {}; restore it from a copy", path,
                            facts.bytes, std::uint64_t{bigEndian32(bytes, 28)} * facts.pageSize));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

} // namespace vitrine::sessions
