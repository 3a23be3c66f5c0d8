// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A random-access view of rows that are made when asked for: the rows of a replayed step exist once, in its template.
// Rows come by value, so keep the index of a row, not its address. The view borrows its source.

#include <cstddef>
#include <iterator>

namespace vitrine::profiler {

template <class Row> class RowSource {
public:
    virtual ~RowSource() = default;
    virtual std::size_t rowCount() const = 0;
    virtual Row rowAt(std::size_t index) const = 0;
};

template <class Row> class LazyRows {
public:
    using value_type = Row;

    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag; // by value; C++20 sees a random-access iterator
        using iterator_concept = std::random_access_iterator_tag;
        using value_type = Row;
        using difference_type = std::ptrdiff_t;
        using reference = Row;
        using pointer = void;

        Iterator() = default;
        Iterator(const RowSource<Row>* source, std::size_t index) : source_(source), index_(index) {}
        Row operator*() const { return source_->rowAt(index_); }
        Row operator[](std::ptrdiff_t offset) const { return *(*this + offset); }
        Iterator& operator++() { return *this += 1; }
        Iterator& operator--() { return *this += -1; }
        Iterator operator++(int) {
            Iterator before = *this;
            ++*this;
            return before;
        }
        Iterator operator--(int) {
            Iterator before = *this;
            --*this;
            return before;
        }
        Iterator& operator+=(std::ptrdiff_t offset) {
            index_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(index_) + offset);
            return *this;
        }
        Iterator& operator-=(std::ptrdiff_t offset) { return *this += -offset; }
        friend Iterator operator+(Iterator it, std::ptrdiff_t offset) { return it += offset; }
        friend Iterator operator+(std::ptrdiff_t offset, Iterator it) { return it += offset; }
        friend Iterator operator-(Iterator it, std::ptrdiff_t offset) { return it -= offset; }
        friend std::ptrdiff_t operator-(const Iterator& a, const Iterator& b) {
            return static_cast<std::ptrdiff_t>(a.index_) - static_cast<std::ptrdiff_t>(b.index_);
        }
        friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }
        friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.index_ <=> b.index_; }

    private:
        const RowSource<Row>* source_ = nullptr;
        std::size_t index_ = 0;
    };

    LazyRows() = default;
    explicit LazyRows(const RowSource<Row>& source) : source_(&source), size_(source.rowCount()) {}

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    Row operator[](std::size_t index) const { return source_->rowAt(index); } ///< index < size()
    Row front() const { return source_->rowAt(0); }
    Row back() const { return source_->rowAt(size_ - 1); }
    Iterator begin() const { return {source_, 0}; }
    Iterator end() const { return {source_, size_}; }

private:
    const RowSource<Row>* source_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace vitrine::profiler
