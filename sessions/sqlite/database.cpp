// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/sqlite/database.h"

#include <algorithm>
#include <fmt/format.h>
#include <sqlite3.h>

#include "base/error.h"
#include "base/log.h"

namespace vitrine::sessions {

namespace {

/// Two writers wait for each other this long; one transaction of a run takes milliseconds.
constexpr int kBusyTimeoutMs = 5000;

/// A path as a file: URI; bytes with a meaning in URIs are escaped.
std::string fileUri(const std::string& path, std::string_view parameters) {
    std::string uri = "file:";
    for (const char c : path) {
        if (c == '?' || c == '#' || c == '%') {
            uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
        } else {
            uri += c;
        }
    }
    uri += parameters;
    return uri;
}

int openFlags(Database::Access access) {
    switch (access) {
    case Database::Access::ReadOnly:
    case Database::Access::Immutable:
        return SQLITE_OPEN_READONLY;
    case Database::Access::ReadWrite:
        return SQLITE_OPEN_READWRITE;
    case Database::Access::Create:
        break;
    }
    return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
}

/// One short line: SQLite quotes what it found in a damaged file.
std::string oneLine(std::string_view text) {
    constexpr std::size_t kMost = 120;
    std::string result(text.substr(0, std::min(text.find('\n'), kMost)));
    std::replace_if(result.begin(), result.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
    return result;
}

std::string_view typeName(int type) {
    switch (type) {
    case SQLITE_INTEGER:
        return "an integer";
    case SQLITE_FLOAT:
        return "a real number";
    case SQLITE_TEXT:
        return "a text";
    case SQLITE_BLOB:
        return "bytes";
    default:
        return "nothing";
    }
}

} // namespace

std::string quotedName(std::string_view name) {
    std::string result = "\"";
    for (const char c : name) {
        result += c;
        if (c == '"') {
            result += c;
        }
    }
    return result + "\"";
}

void throwSqliteError(int code, const std::string& path, std::string_view fullDetail) {
    const std::string detail = oneLine(fullDetail);
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        throw base::BadInput(fmt::format(
            "{}: the session file is damaged ({}); restore it from a copy, nothing was written", path, detail));
    case SQLITE_ERROR:
        // Our own statements are correct, so the tables of the file are not what its version says.
        if (detail.starts_with("no such ") || detail.find(" has no column named ") != std::string::npos) {
            throw base::BadInput(
                fmt::format("{}: the session file is damaged ({}); restore it from a copy", path, detail));
        }
        throw base::Internal(fmt::format("{}: {} (SQLite code {})", path, detail, code));
    case SQLITE_CANTOPEN:
        throw base::BadInput(
            fmt::format("{}: cannot be opened ({}); check the path and its permissions", path, detail));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        throw base::BadInput(
            fmt::format("{}: cannot be written ({}); check its permissions or use a copy", path, detail));
    case SQLITE_FULL:
        throw base::Internal(fmt::format("{}: the disk is full; free some space", path));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        throw Busy(fmt::format("{}: another program has locked the session file; close it or try again", path));
    case SQLITE_IOERR:
        throw base::Internal(fmt::format("{}: reading or writing failed ({}); check the disk", path, detail));
    case SQLITE_NOMEM:
        throw base::Internal(fmt::format("{}: not enough host memory to work on the session file", path));
    default:
        throw base::Internal(fmt::format("{}: {} (SQLite code {})", path, detail, code));
    }
}

void Database::Close::operator()(sqlite3* handle) const noexcept {
    sqlite3_close_v2(handle);
}

Database::Database(const std::string& path, Access access) : path_(path) {
    const std::string uri = fileUri(path, access == Access::Immutable ? "?immutable=1" : "");
    sqlite3* raw = nullptr;
    const int code =
        sqlite3_open_v2(uri.c_str(), &raw, openFlags(access) | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    handle_.reset(raw);
    if (code != SQLITE_OK) {
        throwSqliteError(code, path_, raw != nullptr ? sqlite3_errmsg(raw) : sqlite3_errstr(code));
    }
    sqlite3_extended_result_codes(raw, 1);
    sqlite3_busy_timeout(raw, kBusyTimeoutMs);
    // A session from elsewhere may hold a hostile schema: no functions with side effects in it, no writable schema.
    sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
}

Database::~Database() = default;

void Database::check(int code) const {
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) {
        throwSqliteError(code, path_, sqlite3_errmsg(handle_.get()));
    }
}

void Database::execute(const std::string& sql) const {
    check(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

std::int64_t Database::queryInteger(const std::string& sql) const {
    Statement statement(*this, sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::string Database::queryText(const std::string& sql) const {
    Statement statement(*this, sql);
    return statement.step() ? statement.text(0) : std::string();
}

std::int64_t Database::lastInsertId() const {
    return sqlite3_last_insert_rowid(handle_.get());
}

std::int64_t Database::changes() const {
    return sqlite3_changes64(handle_.get());
}

std::int64_t Database::totalChanges() const {
    return sqlite3_total_changes64(handle_.get());
}

bool Database::inTransaction() const {
    return sqlite3_get_autocommit(handle_.get()) == 0;
}

void Database::setBusyTimeout(int milliseconds) const {
    sqlite3_busy_timeout(handle_.get(), milliseconds);
}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const noexcept {
    sqlite3_finalize(handle);
}

Statement::Statement(const Database& database, std::string_view sql) : database_(&database) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
    handle_.reset(raw);
    database.check(code);
}

void Statement::reset() {
    // The code repeats the failure of the last step, which was already thrown.
    sqlite3_reset(handle_.get());
    sqlite3_clear_bindings(handle_.get());
}

bool Statement::step() {
    const int code = sqlite3_step(handle_.get());
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code != SQLITE_DONE) {
        const std::string detail = sqlite3_errmsg(database_->handle());
        sqlite3_reset(handle_.get());
        throwSqliteError(code, database_->path(), detail);
    }
    // Ends the statement's read transaction now, not at its destruction.
    sqlite3_reset(handle_.get());
    return false;
}

void Statement::run() {
    while (step()) {
    }
}

/// Whether there is a value, which must be of this type.
bool Statement::holds(int column, int type) const {
    const int found = sqlite3_column_type(handle_.get(), column);
    if (found != SQLITE_NULL && found != type) {
        throw WrongValue(fmt::format("{}: the session file is damaged (the column {} holds {} in place of {}); restore "
                                     "it from a copy, nothing was written",
                                     database_->path(), oneLine(sqlite3_column_name(handle_.get(), column)),
                                     typeName(found), typeName(type)));
    }
    return found == type;
}

std::int64_t Statement::integer(int column) const {
    return holds(column, SQLITE_INTEGER) ? sqlite3_column_int64(handle_.get(), column) : 0;
}

std::string Statement::text(int column) const {
    if (!holds(column, SQLITE_TEXT)) {
        return {};
    }
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
    const int size = sqlite3_column_bytes(handle_.get(), column);
    return data == nullptr ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

std::span<const std::byte> Statement::blob(int column) const {
    if (!holds(column, SQLITE_BLOB)) {
        return {};
    }
    const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(handle_.get(), column));
    const int size = sqlite3_column_bytes(handle_.get(), column);
    return data == nullptr ? std::span<const std::byte>() : std::span(data, static_cast<std::size_t>(size));
}

void Statement::bindOne(int index, std::int64_t value) {
    database_->check(sqlite3_bind_int64(handle_.get(), index, value));
}

void Statement::bindOne(int index, double value) {
    database_->check(sqlite3_bind_double(handle_.get(), index, value));
}

void Statement::bindOne(int index, std::string_view value) {
    database_->check(
        sqlite3_bind_text64(handle_.get(), index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::bindOne(int index, std::span<const std::byte> value) {
    // A null pointer would bind NULL; an empty blob is a value.
    static constexpr std::byte kNothing{};
    const std::byte* data = value.empty() ? &kNothing : value.data();
    database_->check(sqlite3_bind_blob64(handle_.get(), index, data, value.size(), SQLITE_TRANSIENT));
}

Transaction::Transaction(const Database& database) : database_(database) {
    database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
    if (open_ && database_.inTransaction() &&
        sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr) != SQLITE_OK) {
        base::logWarning(
            fmt::format("{}: a rollback failed: {}", database_.path(), sqlite3_errmsg(database_.handle())));
    }
}

void Transaction::commit() {
    database_.execute("COMMIT");
    open_ = false;
}

ReadTransaction::ReadTransaction(const Database& database) : database_(database), own_(!database.inTransaction()) {
    if (own_) {
        database_.execute("BEGIN");
    }
}

ReadTransaction::~ReadTransaction() {
    if (own_) {
        // Nothing was written, so nothing can be lost by a failure.
        sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
}

} // namespace vitrine::sessions
