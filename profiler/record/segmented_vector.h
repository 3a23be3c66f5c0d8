// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Growing sequences whose past states stay readable: the builder appends, readers keep views that never change.
//
// A view shares the blocks. What a view can see is never written again: appending writes after it, and changing an
// element that a view has seen copies its block first. So views need no lock, and a view costs one pointer a block.
// One thread writes; any thread may read a view.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace vitrine::profiler {

template <class T, std::size_t N> struct VectorBlock {
    T items[N];
};

template <class T, std::size_t N> class BlockView {
public:
    using Block = VectorBlock<T, N>;
    BlockView() = default;
    BlockView(std::vector<std::shared_ptr<const Block>> blocks, std::size_t size)
        : blocks_(std::move(blocks)), size_(size) {}

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    const T& operator[](std::size_t index) const { return blocks_[index / N]->items[index % N]; }
    /// The element and those after it in its block.
    const T* from(std::size_t index) const { return blocks_[index / N]->items + index % N; }

private:
    std::vector<std::shared_ptr<const Block>> blocks_;
    std::size_t size_ = 0;
};

template <class T, std::size_t N> class SegmentedVector {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    using Block = VectorBlock<T, N>;
    using View = BlockView<T, N>;

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    const T& operator[](std::size_t index) const { return blocks_[index / N]->items[index % N]; }
    const T& back() const { return (*this)[size_ - 1]; }

    void push(const T& value) {
        const std::size_t block = size_ / N;
        if (block == blocks_.size()) {
            blocks_.push_back(std::make_shared_for_overwrite<Block>());
            seen_.push_back(0);
        } else if (size_ % N < seen_[block]) {
            copyBlock(block);
        }
        blocks_[block]->items[size_ % N] = value;
        ++size_;
    }

    /// The element for writing; index < size().
    T& writable(std::size_t index) {
        const std::size_t block = index / N;
        if (index % N < seen_[block]) {
            copyBlock(block);
        }
        return blocks_[block]->items[index % N];
    }

    void truncate(std::size_t size) {
        size_ = size;
        blocks_.resize((size + N - 1) / N);
        seen_.resize(blocks_.size());
    }

    /// What is there now, for readers.
    View view() {
        std::vector<std::shared_ptr<const Block>> blocks(blocks_.begin(), blocks_.end());
        for (std::size_t block = 0; block < blocks_.size(); ++block) {
            seen_[block] = std::max(seen_[block], std::min(N, size_ - block * N));
        }
        return View(std::move(blocks), size_);
    }

private:
    void copyBlock(std::size_t block) {
        blocks_[block] = std::make_shared<Block>(*blocks_[block]);
        seen_[block] = 0;
    }

    std::vector<std::shared_ptr<Block>> blocks_;
    std::vector<std::size_t> seen_; ///< elements of each block that a view can see
    std::size_t size_ = 0;
};

/// The same in one piece, for what readers take as a span.
template <class T> class SharedView {
public:
    SharedView() = default;
    SharedView(std::shared_ptr<const T[]> items, std::size_t size) : items_(std::move(items)), size_(size) {}
    const T* begin() const { return items_.get(); }
    const T* end() const { return items_.get() + size_; }
    std::size_t size() const { return size_; }

private:
    std::shared_ptr<const T[]> items_;
    std::size_t size_ = 0;
};

template <class T> class SharedVector {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    std::size_t size() const { return size_; }
    const T& operator[](std::size_t index) const { return items_[index]; }

    /// Keeps the elements in the order of `key`, equal ones in the order of their coming.
    template <class Key> void insertOrdered(const T& value, Key key) {
        std::size_t at = size_;
        while (at > 0 && key(value) < key(items_[at - 1])) {
            --at;
        }
        if (size_ == capacity_ || at < seen_) {
            grow();
        }
        std::copy_backward(items_.get() + at, items_.get() + size_, items_.get() + size_ + 1);
        items_[at] = value;
        ++size_;
    }

    SharedView<T> view() {
        seen_ = size_;
        return SharedView<T>(items_, size_);
    }

private:
    void grow() {
        capacity_ = std::max<std::size_t>(64, size_ == capacity_ ? size_ * 2 : capacity_);
        auto items = std::make_shared<T[]>(capacity_);
        std::copy(items_.get(), items_.get() + size_, items.get());
        items_ = std::move(items);
        seen_ = 0;
    }

    std::shared_ptr<T[]> items_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::size_t seen_ = 0;
};

} // namespace vitrine::profiler
