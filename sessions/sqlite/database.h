// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A thin layer over SQLite: values in and out, one owner for each handle, errors as base::Error.
// A Database and everything made with it belong to one thread at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace vitrine::sessions {

/// Another program holds the file: it may go on when it is tried again.
class Busy : public base::Internal {
public:
    using base::Internal::Internal;
};

/// A value of a row is not of its column's type: damage of that row alone.
class WrongValue : public base::BadInput {
public:
    using base::BadInput::BadInput;
};

/// The error for a result code of SQLite that is not a success. Damage, a missing file and missing rights become
/// BadInput. A lock that was held too long becomes Busy, a full disk and failing hardware Internal (exit code 1: the
/// work failed).
[[noreturn]] void throwSqliteError(int code, const std::string& path, std::string_view detail);

/// A name as SQL writes it.
std::string quotedName(std::string_view name);

class Statement;

class Database {
public:
    enum class Access : std::uint8_t { ReadOnly, Immutable, ReadWrite, Create };

    /// Opens without looking at the content; Immutable reads a file on a medium where no lock can be made.
    Database(const std::string& path, Access access);
    ~Database();
    Database(const Database&) = delete; // statements hold its address
    Database& operator=(const Database&) = delete;

    const std::string& path() const { return path_; }

    /// Runs statements that give no rows, separated by semicolons.
    void execute(const std::string& sql) const;
    /// One value of the first row; 0 when there is no row.
    std::int64_t queryInteger(const std::string& sql) const;
    std::string queryText(const std::string& sql) const;

    std::int64_t lastInsertId() const;
    std::int64_t changes() const;      ///< rows that the last statement changed
    std::int64_t totalChanges() const; ///< since opening
    bool inTransaction() const;
    void setBusyTimeout(int milliseconds) const;

    sqlite3* handle() const { return handle_.get(); }
    void check(int code) const; ///< throws unless the code is a success

private:
    struct Close {
        void operator()(sqlite3* handle) const noexcept;
    };
    std::string path_;
    std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement. Parameters count from 1, columns from 0.
class Statement {
public:
    Statement(const Database& database, std::string_view sql);

    /// Binds in order from parameter 1 and makes the statement ready to step.
    template <class... Values> Statement& bind(const Values&... values) {
        reset();
        int index = 0;
        (bindOne(++index, values), ...);
        return *this;
    }

    /// Binds one more parameter.
    template <class Value> void bindAt(int index, const Value& value) { bindOne(index, value); }

    /// True while there is a row.
    bool step();
    /// Steps to the end; for statements without rows.
    void run();

    // A null reads as nothing. A value of another type throws BadInput: SQLite keeps any value in any column, and its
    // own conversions would make a wrong answer of it.
    std::int64_t integer(int column) const;
    std::uint64_t unsignedInteger(int column) const { return static_cast<std::uint64_t>(integer(column)); }
    std::string text(int column) const;
    /// Valid until the next step.
    std::span<const std::byte> blob(int column) const;

private:
    void reset();
    bool holds(int column, int type) const;
    void bindOne(int index, std::int64_t value);
    void bindOne(int index, std::uint64_t value) { bindOne(index, static_cast<std::int64_t>(value)); }
    void bindOne(int index, int value) { bindOne(index, static_cast<std::int64_t>(value)); }
    void bindOne(int index, double value);
    void bindOne(int index, std::string_view value);
    void bindOne(int index, const std::string& value) { bindOne(index, std::string_view(value)); }
    void bindOne(int index, const char* value) { bindOne(index, std::string_view(value)); }
    void bindOne(int index, std::span<const std::byte> value);
    void bindOne(int index, const std::vector<std::byte>& value) { bindOne(index, std::span<const std::byte>(value)); }

    struct Finalize {
        void operator()(sqlite3_stmt* handle) const noexcept;
    };
    const Database* database_;
    std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// Takes the write lock at the beginning, so that no later statement can fail because it does not get the lock. Rolls
/// back unless committed.
class Transaction {
public:
    explicit Transaction(const Database& database);
    ~Transaction();
    Transaction(const Transaction&) = delete; // one begin, one end
    Transaction& operator=(const Transaction&) = delete;

    void commit();

private:
    const Database& database_;
    bool open_ = true;
};

/// Several reads that must see one state of the file.
class ReadTransaction {
public:
    explicit ReadTransaction(const Database& database);
    ~ReadTransaction();
    ReadTransaction(const ReadTransaction&) = delete; // one begin, one end
    ReadTransaction& operator=(const ReadTransaction&) = delete;

private:
    const Database& database_;
    bool own_;
};

} // namespace vitrine::sessions
