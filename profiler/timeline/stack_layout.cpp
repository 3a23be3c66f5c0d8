// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/stack_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_map>

namespace vitrine::profiler {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr int kBinBits = 3; ///< bins for each power of two: 8
constexpr std::size_t kBins = 64U << kBinBits;
constexpr int kTriesInBin = 8;

/// Places blocks in constant time: free gaps stand in bins by size, a bitmap finds the next bin that has some.
class Stacker {
public:
    Stacker() { heads_.fill(kNone); }

    /// Returns the piece; `addressOf` gives its address.
    std::uint32_t place(std::uint64_t bytes) {
        const std::uint32_t gap = findGap(bytes);
        if (gap == kNone) {
            const std::uint32_t piece = newPiece({top_, bytes, last_, kNone});
            if (last_ != kNone) {
                pieces_[last_].next = piece;
            }
            last_ = piece;
            top_ += bytes;
            return piece;
        }
        unlink(gap);
        if (pieces_[gap].bytes > bytes) {
            const Piece whole = pieces_[gap];
            const std::uint32_t rest = newPiece({whole.address + bytes, whole.bytes - bytes, gap, whole.next});
            pieces_[whole.next].before = rest; // a gap always has a block after it
            pieces_[gap].next = rest;
            pieces_[gap].bytes = bytes;
            link(rest);
        }
        return gap;
    }

    std::uint64_t addressOf(std::uint32_t piece) const { return pieces_[piece].address; }

    void remove(std::uint32_t piece) {
        piece = joinBefore(piece);
        const std::uint32_t next = pieces_[piece].next;
        if (next != kNone && pieces_[next].free) {
            unlink(next);
            absorbNext(piece);
        }
        if (pieces_[piece].next == kNone) {
            top_ = pieces_[piece].address;
            last_ = pieces_[piece].before;
            if (last_ != kNone) {
                pieces_[last_].next = kNone;
            }
            spare_.push_back(piece);
        } else {
            link(piece);
        }
    }

private:
    struct Piece {
        std::uint64_t address = 0, bytes = 0;
        std::uint32_t before = kNone, next = kNone;       ///< neighbours by address
        std::uint32_t binBefore = kNone, binNext = kNone; ///< neighbours in the bin
        bool free = false;
    };

    static std::size_t binOf(std::uint64_t bytes) {
        const int width = std::bit_width(bytes);
        const auto low = width > kBinBits + 1 ? (bytes >> (width - 1 - kBinBits)) & ((1U << kBinBits) - 1) : bytes & 7;
        return (static_cast<std::size_t>(width == 0 ? 0 : width - 1) << kBinBits) + static_cast<std::size_t>(low);
    }

    std::uint32_t findGap(std::uint64_t bytes) const {
        const std::size_t bin = binOf(bytes);
        std::uint32_t gap = heads_[bin];
        for (int tries = 0; gap != kNone && tries < kTriesInBin; ++tries, gap = pieces_[gap].binNext) {
            if (pieces_[gap].bytes >= bytes) {
                return gap;
            }
        }
        for (std::size_t word = (bin + 1) / 64; word < used_.size(); ++word) {
            std::uint64_t bits = used_[word];
            if (word == (bin + 1) / 64) {
                bits &= ~std::uint64_t{0} << ((bin + 1) % 64);
            }
            if (bits != 0) {
                return heads_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
            }
        }
        return kNone;
    }

    std::uint32_t newPiece(const Piece& piece) {
        if (spare_.empty()) {
            pieces_.push_back(piece);
            return static_cast<std::uint32_t>(pieces_.size() - 1);
        }
        const std::uint32_t index = spare_.back();
        spare_.pop_back();
        pieces_[index] = piece;
        return index;
    }

    void link(std::uint32_t gap) {
        Piece& piece = pieces_[gap];
        const std::size_t bin = binOf(piece.bytes);
        piece.free = true;
        piece.binBefore = kNone;
        piece.binNext = heads_[bin];
        if (piece.binNext != kNone) {
            pieces_[piece.binNext].binBefore = gap;
        }
        heads_[bin] = gap;
        used_[bin / 64] |= std::uint64_t{1} << (bin % 64);
    }

    void unlink(std::uint32_t gap) {
        Piece& piece = pieces_[gap];
        const std::size_t bin = binOf(piece.bytes);
        piece.free = false;
        if (piece.binBefore != kNone) {
            pieces_[piece.binBefore].binNext = piece.binNext;
        } else {
            heads_[bin] = piece.binNext;
        }
        if (piece.binNext != kNone) {
            pieces_[piece.binNext].binBefore = piece.binBefore;
        }
        if (heads_[bin] == kNone) {
            used_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
        }
    }

    /// Joins a piece with the gap before it; returns the joined piece.
    std::uint32_t joinBefore(std::uint32_t piece) {
        const std::uint32_t before = pieces_[piece].before;
        if (before == kNone || !pieces_[before].free) {
            return piece;
        }
        unlink(before);
        absorbNext(before);
        return before;
    }

    void absorbNext(std::uint32_t piece) {
        const std::uint32_t next = pieces_[piece].next;
        pieces_[piece].bytes += pieces_[next].bytes;
        pieces_[piece].next = pieces_[next].next;
        if (pieces_[next].next != kNone) {
            pieces_[pieces_[next].next].before = piece;
        } else {
            last_ = piece;
        }
        spare_.push_back(next);
    }

    std::vector<Piece> pieces_;
    std::vector<std::uint32_t> spare_;
    std::array<std::uint32_t, kBins> heads_{};
    std::array<std::uint64_t, kBins / 64> used_{};
    std::uint64_t top_ = 0;
    std::uint32_t last_ = kNone;
};

} // namespace

StackLayout stackLayout(const HistoryViews& history, std::atomic<std::uint64_t>& eventsDone) {
    constexpr std::size_t kReportEvery = 1 << 16;
    StackLayout layout;
    const MemoryEvents& events = history.events;
    layout.addresses.assign(events.rows(), 0);
    std::unordered_map<std::uint32_t, std::uint32_t> pieces; // of the living rows
    Stacker stacker;
    ShapeIndexBuilder shapes;
    const BoxOf boxOf = [&](std::uint32_t row) {
        const AllocationLife life = events.life(row);
        return BlockBox{layout.addresses[row], history.defs[life.def].bytes, life.born, events.freed(row)};
    };
    const auto apply = [&](const MemoryEvent& event) {
        if (event.change.space() != base::MemorySpace::Device) {
            return;
        }
        if (event.change.death()) {
            if (const auto piece = pieces.extract(event.row)) {
                stacker.remove(piece.mapped());
            }
            shapes.add(event.row, boxOf(event.row), boxOf);
        } else if (event.change.bytes() > 0) {
            const std::uint32_t piece = stacker.place(event.change.bytes());
            pieces.emplace(event.row, piece);
            layout.addresses[event.row] = stacker.addressOf(piece);
            layout.extent = std::max(layout.extent, layout.addresses[event.row] + event.change.bytes());
        }
    };
    for (std::size_t first = 0; first < events.size(); first += kReportEvery) {
        eventsDone.store(first, std::memory_order_relaxed);
        events.each(first, std::min(first + kReportEvery, events.size()), apply);
    }
    layout.shapes = shapes.view();
    eventsDone.store(history.events.size(), std::memory_order_relaxed);
    return layout;
}

} // namespace vitrine::profiler
