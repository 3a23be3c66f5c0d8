// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A thread that answers questions, of which only the newest one counts. Unlike LatestJob (latest_job.h) it may send
// several answers while it works, and keeps what it has learned between questions.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/stop.h"

namespace vitrine::ui {

/// Make it the last member of its owner, whose other members `answer` may then use until the end.
template <class Question> class QuestionThread {
public:
    /// `answer` runs on the thread. Its token asks it to stop as soon as another question comes.
    using Answer = std::function<void(const Question& question, const base::StopToken& stop)>;

    explicit QuestionThread(Answer answer) : answer_(std::move(answer)), thread_([this] { loop(); }) {}
    ~QuestionThread() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
            current_.request_stop();
        }
        wake_.notify_all();
        thread_.join();
    }
    QuestionThread(const QuestionThread&) = delete; // a thread holds its address
    QuestionThread& operator=(const QuestionThread&) = delete;

    /// Ends the question in progress and takes this one.
    void ask(Question question) {
        {
            const std::lock_guard lock(mutex_);
            endCurrent();
            waiting_.emplace(Waiting{std::move(question), current_.get_token()});
        }
        wake_.notify_all();
    }
    /// Ends the question in progress; there is no other.
    void cancel() {
        const std::lock_guard lock(mutex_);
        endCurrent();
    }

private:
    struct Waiting {
        Question question;
        base::StopToken stop;
    };
    void endCurrent() { // with the mutex held
        current_.request_stop();
        current_ = base::StopSource();
        waiting_.reset();
    }
    void loop() {
        while (true) {
            std::optional<Waiting> next;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [this] { return ending_ || waiting_.has_value(); });
                if (ending_) {
                    return;
                }
                next = std::exchange(waiting_, std::nullopt);
            }
            answer_(next->question, next->stop);
        }
    }

    Answer answer_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::optional<Waiting> waiting_;
    base::StopSource current_;
    bool ending_ = false;
    std::thread thread_;
};

} // namespace vitrine::ui
