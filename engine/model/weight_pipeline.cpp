// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Threads that read pieces of files into pinned buffers and send them to the device, while the context's thread
// allocates tensors and starts work on what has arrived.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "engine/model/weight_mover.h"

namespace vitrine::engine {

namespace {

/// What may wait to be read: enough to keep the threads busy, little enough that tensors appear as they arrive.
constexpr std::uint64_t kMostQueued = std::uint64_t{256} << 20;
/// Below this share in the page cache a file is read past it.
constexpr double kCachedShare = 0.5;

struct Piece {
    WeightMove bytes;
    std::uint64_t move = 0; ///< number of the move that it is part of
    bool direct = false;
};

struct ReadPiece {
    std::uint64_t number = 0;
    base::TimeNs begin = 0, end = 0;
};

class PipelineMover final : public WeightMover {
public:
    PipelineMover(kernels::Context& context, std::unique_ptr<UploadPort> port, MovedCallback moved)
        : context_(context), port_(std::move(port)), moved_(std::move(moved)), portBegin_(context.clock().now()),
          pieceBytes_(port_->bufferBytes() - 2 * SafetensorsFile::kDirectAlignment) {
        try {
            for (int worker = 0; worker < port_->workers(); ++worker) {
                threads_.emplace_back([this, worker] { work(worker); });
            }
        } catch (...) {
            stopThreads();
            throw;
        }
    }
    ~PipelineMover() override { stopThreads(); }
    PipelineMover(const PipelineMover&) = delete; // threads hold its address
    PipelineMover& operator=(const PipelineMover&) = delete;

    void move(const WeightMove& move) override {
        const bool direct = readPastCache(*move.source->location->file);
        {
            const std::lock_guard lock(mutex_);
            for (std::uint64_t done = 0; done < move.bytes; done += pieceBytes_) {
                pieces_.push_back(
                    {{move.source, move.offset + done, std::min(pieceBytes_, move.bytes - done), move.out + done},
                     left_.size(),
                     direct});
            }
            left_.push_back((move.bytes + pieceBytes_ - 1) / pieceBytes_);
            queuedBytes_ += move.bytes;
        }
        wake_.notify_all();
        pump([this] { return queuedBytes_ <= kMostQueued; });
    }

    void wait(std::uint64_t count) override {
        pump([this, count] {
            while (inPlace_ < left_.size() && left_[inPlace_] == 0) {
                ++inPlace_;
            }
            return inPlace_ >= count;
        });
        port_->beforeCompute();
    }

    void reuse() override { port_->afterCompute(); }

    void finish() override {
        wait(left_.size()); // only this thread adds to it
        port_->finish();
        reportCopies();
    }

private:
    void work(int worker) {
        for (;;) {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return ending_ || next_ < pieces_.size(); });
            if (ending_) {
                return;
            }
            const std::uint64_t number = next_++;
            const Piece piece = pieces_[number];
            lock.unlock();
            ReadPiece done{number};
            std::exception_ptr error;
            try {
                context_.throwIfStopped();
                send(worker, piece, done);
            } catch (...) {
                error = std::current_exception();
            }
            lock.lock();
            queuedBytes_ -= piece.bytes.bytes;
            if (error != nullptr) {
                error_ = error_ == nullptr ? error : error_;
                ending_ = true;
            } else {
                --left_[piece.move];
                read_.push_back(done);
            }
            lock.unlock();
            wake_.notify_all();
        }
    }

    void send(int worker, const Piece& piece, ReadPiece& done) {
        auto* buffer = static_cast<std::byte*>(port_->buffer(worker));
        done.begin = context_.clock().now();
        const Checkpoint::Location& location = *piece.bytes.source->location;
        const std::byte* data = buffer;
        if (piece.direct) {
            data = location.file->readDirect(*location.entry, piece.bytes.offset, buffer, piece.bytes.bytes);
        } else {
            location.file->read(*location.entry, piece.bytes.offset, buffer, piece.bytes.bytes);
        }
        checkMovedBytes(piece.bytes, data);
        done.end = context_.clock().now();
        port_->send(worker, data, piece.bytes.out, piece.bytes.bytes, done.number);
    }

    /// Reports what the threads did until `enough` (asked under the lock) holds; rethrows what one of them threw.
    template <class Enough> void pump(const Enough& enough) {
        for (;;) {
            std::deque<ReadPiece> read;
            bool done = false;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return error_ != nullptr || !read_.empty() || enough(); });
                if (error_ != nullptr) {
                    std::rethrow_exception(error_);
                }
                read.swap(read_);
                done = enough();
            }
            for (const ReadPiece& piece : read) {
                // Only this thread adds pieces, so they stay where they are while it reads them.
                const WeightMove& bytes = pieces_[piece.number].bytes;
                context_.tracer().span("Read", bytes.source->spec.name, piece.begin, piece.end, bytes.bytes);
                moved_(*bytes.source, bytes.bytes);
            }
            reportCopies();
            context_.throwIfStopped();
            if (done) {
                return;
            }
        }
    }

    void reportCopies() {
        const auto at = [&](double seconds) { return portBegin_ + static_cast<base::TimeNs>(seconds * 1e9); };
        for (const UploadPort::Copied& copy : port_->takeCopied()) {
            const WeightMove& bytes = pieces_[copy.tag].bytes;
            context_.tracer().span("Copy", bytes.source->spec.name, at(copy.begin), at(copy.end), bytes.bytes);
        }
    }

    bool readPastCache(const SafetensorsFile& file) {
        const auto known = direct_.find(&file);
        if (known != direct_.end()) {
            return known->second;
        }
        const double share = file.cachedShare();
        const bool direct = share < kCachedShare;
        base::logInfo(fmt::format("{}: {:.0f} % in the page cache, read {}", file.path(), share * 100,
                                  direct ? "past it (O_DIRECT)" : "from it"));
        direct_.emplace(&file, direct);
        return direct;
    }

    void stopThreads() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) {
            thread.join();
        }
        threads_.clear();
    }

    kernels::Context& context_;
    std::unique_ptr<UploadPort> port_;
    MovedCallback moved_;
    base::TimeNs portBegin_;
    std::uint64_t pieceBytes_;
    std::map<const SafetensorsFile*, bool> direct_;
    std::mutex mutex_; ///< of all below but threads_
    std::condition_variable wake_;
    std::deque<Piece> pieces_;        ///< all that were ever asked for; a deque keeps them in place as it grows
    std::uint64_t next_ = 0;          ///< the first that no thread has taken
    std::vector<std::uint64_t> left_; ///< by move: pieces that are not sent
    std::uint64_t inPlace_ = 0;       ///< moves that are sent with all before them
    std::uint64_t queuedBytes_ = 0;
    std::deque<ReadPiece> read_; ///< what the context's thread has not reported
    std::exception_ptr error_;
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

} // namespace

std::unique_ptr<WeightMover> makePipelineMover(kernels::Context& context, std::unique_ptr<UploadPort> port,
                                               MovedCallback moved) {
    return std::make_unique<PipelineMover>(context, std::move(port), std::move(moved));
}

} // namespace vitrine::engine
