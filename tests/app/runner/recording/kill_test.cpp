// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What is left of a session when its writer is killed at any moment, and what several writers leave together.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "app/runner/recording/run_recording.h"
#include "app/runner/recording/stored_timeline.h"
#include "app/runner/runs/run_compare.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "sessions/session_file.h"
#include "tests/app/program.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using sessions::OpenMode;
using sessions::RunInfo;
using sessions::RunStatus;
using sessions::SessionFile;
using std::chrono::milliseconds;

/// A number that parent and child both see.
class SharedCounter {
public:
    SharedCounter()
        : value_(new(::mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<std::int64_t>(0)) {}
    ~SharedCounter() { ::munmap(value_, sizeof(*value_)); }
    SharedCounter(const SharedCounter&) = delete;
    SharedCounter& operator=(const SharedCounter&) = delete;
    std::atomic<std::int64_t>& value() { return *value_; }

private:
    std::atomic<std::int64_t>* value_;
};

/// Records as fast as it can: a rising counter, and memory that comes and goes. `limit` 0: until killed.
void recordWithoutEnd(const std::string& path, std::atomic<std::int64_t>& progress, std::int64_t limit) {
    RunInfo info;
    info.name = "writer";
    info.workload = "generate";
    RunRecording recording(SessionFile::open(path, OpenMode::CreateOrOpen), info);
    base::TraceSink& trace = recording.trace();
    const base::StringId counter = trace.intern("progress");
    const base::StringId tensor = trace.intern("tensor");
    const base::MonotonicClock clock;
    for (std::int64_t i = 1; limit == 0 || i <= limit; ++i) {
        const base::TimeNs now = clock.now();
        trace.record(base::AllocationEvent{.time = now,
                                           .id = static_cast<std::uint64_t>(i),
                                           .address = static_cast<std::uint64_t>(i % 64) << 20,
                                           .bytes = std::uint64_t{1} << 20,
                                           .name = tensor,
                                           .category = base::MemoryCategory::Activations});
        trace.record(base::FreeEvent{now, static_cast<std::uint64_t>(i)});
        trace.record(base::CounterEvent{now, counter, static_cast<double>(i)});
        if (i % 64 == 0) {
            recording.setText("output", std::to_string(i));
        }
        progress = i;
        // A million events a second is more than any engine makes; more would only measure the recorder's limit.
        if (i % 256 == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(500));
        }
    }
    recording.finish(RunStatus::Done, "{}", "");
}

double lastProgress(const SessionFile& session, sessions::RunId run) {
    const auto samples = loadTimeline(session, run)->counters().samples("progress");
    return samples.empty() ? 0 : samples.back().second;
}

pid_t startWriter(const std::string& path, std::atomic<std::int64_t>& progress, std::int64_t limit) {
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            recordWithoutEnd(path, progress, limit);
        } catch (...) {
            ::_exit(1);
        }
        ::_exit(0);
    }
    return child;
}

/// What a writer had reached at each look of its life.
class Looks {
public:
    /// Looks for so long, every 5 ms. Looks are counted instead of time: while the machine stands still there are none.
    void follow(const std::atomic<std::int64_t>& progress, milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {
            seen_.push_back(progress.load());
            std::this_thread::sleep_for(kEvery);
        }
    }
    /// The number reached a second before the last look; 0 for a shorter life.
    std::int64_t aSecondAgo() const {
        constexpr std::size_t kSecond = milliseconds(1000) / kEvery;
        return seen_.size() > kSecond ? seen_[seen_.size() - 1 - kSecond] : 0;
    }

private:
    static constexpr milliseconds kEvery{5};
    std::vector<std::int64_t> seen_;
};

/// The runs of the file that a killed writer leaves, none without a file; and that it stays usable.
std::vector<RunInfo> runsAfterKill(const std::string& path, std::int64_t secured) {
    if (!std::filesystem::exists(path)) {
        return {};
    }
    auto reader = SessionFile::open(path, OpenMode::ReadOnly);
    std::vector<RunInfo> runs = reader->runs();
    for (const RunInfo& run : runs) {
        EXPECT_EQ(run.status, RunStatus::Interrupted);
    }
    if (secured > 0 && !runs.empty()) {
        EXPECT_GE(lastProgress(*reader, runs.back().id), static_cast<double>(secured));
        EXPECT_EQ(runs.back().lostRecords, 0u);
    }
    reader.reset();
    // A note can be written, also without a reader in between.
    auto writer = SessionFile::open(path, OpenMode::ReadWrite);
    if (!runs.empty()) {
        writer->setNote(runs.back().id, "seen");
        EXPECT_EQ(writer->run(runs.back().id).note, "seen");
    }
    return runs;
}

TEST(Kill, ASessionHoldsAllButTheLastSecond) {
    // What a busy disk holds up is not the recorder's doing.
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    const std::string path = folder.file("runs.vitrine");
    std::mt19937 random(20240601);
    constexpr int kKills = 20;
    std::size_t began = 0;
    int held = 0;
    for (int kill = 1; kill <= kKills; ++kill) {
        SCOPED_TRACE("kill " + std::to_string(kill));
        SharedCounter progress;
        const pid_t child = startWriter(path, progress.value(), 0);
        // Every other life is counted from its first event: the others may end before there is a file.
        const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (kill % 2 == 0 && progress.value() == 0 && std::chrono::steady_clock::now() < patience) {
            std::this_thread::sleep_for(milliseconds(1));
        }
        Looks looks;
        looks.follow(progress.value(), milliseconds(std::uniform_int_distribution<int>(0, 1900)(random)));
        const std::int64_t secured = looks.aSecondAgo();
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        began += progress.value() > 0 ? 1 : 0;
        held += secured > 0 ? 1 : 0;

        // Killed before it could create its run, it leaves none; every earlier one is still there.
        const std::vector<RunInfo> runs = runsAfterKill(path, secured);
        ASSERT_LE(runs.size(), static_cast<std::size_t>(kill));
        ASSERT_GE(runs.size(), began);
    }
    EXPECT_GE(began, std::size_t{kKills} / 2);
    EXPECT_GT(held, 0);
}

TEST(Kill, TheProgramItselfMayBeKilledAnyTime) {
    const test::TempFolder folder;
    const std::string path = folder.file("runs.vitrine");
    std::mt19937 random(7);
    constexpr int kKills = 20;
    for (int kill = 0; kill < kKills; ++kill) {
        // A context that outlasts any life: a run cut to the model's own 4,096 tokens may end before it is killed.
        test::Program program({"generate", "--model", "synthetic:tiny-gpt-oss", "--tokens", "1,2,3", "--ignore-eos",
                               "--set", "max_position_embeddings=2000000", "--max-new-tokens", "1000000", "--session",
                               path, "--json"});
        std::this_thread::sleep_for(milliseconds(std::uniform_int_distribution<int>(1, 900)(random)));
        program.signal(SIGKILL);
        EXPECT_EQ(program.wait().exitCode, 128 + SIGKILL);
        if (std::filesystem::exists(path)) {
            for (const RunInfo& run : SessionFile::open(path, OpenMode::ReadOnly)->runs()) {
                EXPECT_EQ(run.status, RunStatus::Interrupted);
            }
        }
    }
    const auto result = test::vitrine({"session", "ls", path, "--json"});
    EXPECT_EQ(result.exitCode, 0) << result.err;
    const auto next = test::vitrine({"generate", "--model", "synthetic:tiny-gpt-oss", "--tokens", "1,2,3",
                                     "--max-new-tokens", "2", "--session", path, "--json"});
    EXPECT_EQ(next.exitCode, 0) << next.err;
    EXPECT_EQ(SessionFile::open(path, OpenMode::ReadOnly)->runs().back().status, RunStatus::Done);
}

TEST(Writers, TwoProcessesAppendWhileAReaderFollows) {
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    const std::string path = folder.file("runs.vitrine");
    SessionFile::open(path, OpenMode::CreateOrOpen);
    constexpr std::int64_t kEvents = 200'000;
    SharedCounter progressA;
    SharedCounter progressB;
    const pid_t a = startWriter(path, progressA.value(), kEvents);
    const pid_t b = startWriter(path, progressB.value(), kEvents);
    const auto reader = SessionFile::open(path, OpenMode::ReadOnly);
    std::map<std::pair<sessions::RunId, std::string>, std::uint64_t> next;
    std::uint64_t counter = 0;
    int tails = 0;
    bool running = true;
    while (running) {
        int status = 0;
        running = ::waitpid(a, &status, WNOHANG) == 0 || ::waitpid(b, &status, WNOHANG) == 0;
        if (reader->changeCounter() == counter && running) {
            std::this_thread::sleep_for(milliseconds(10));
            continue;
        }
        counter = reader->changeCounter();
        for (const RunInfo& run : reader->runs()) {
            EXPECT_NE(run.status, RunStatus::Failed);
            for (const std::string& stream : reader->streams(run.id)) {
                auto& expected = next[{run.id, stream}];
                for (const base::ColumnChunk& chunk : reader->chunks(run.id, stream, expected)) {
                    EXPECT_EQ(chunk.sequence, expected) << stream;
                    expected = chunk.sequence + 1;
                    ++tails;
                }
            }
        }
    }
    EXPECT_GT(tails, 4);
    const auto runs = reader->runs();
    ASSERT_EQ(runs.size(), 2u);
    for (const RunInfo& run : runs) {
        EXPECT_EQ(run.status, RunStatus::Done);
        EXPECT_EQ(lastProgress(*reader, run.id), static_cast<double>(kEvents));
    }
}

TEST(Writers, AFullDiskDoesNotEndTheRun) {
    const test::TempFolder folder;
    const std::string path = folder.file("runs.vitrine");
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            std::signal(SIGXFSZ, SIG_IGN);
            RunInfo info;
            info.name = "writer";
            RunRecording recording(SessionFile::open(path, OpenMode::CreateOrOpen), info);
            const rlimit little{300 << 10, 300 << 10};
            ::setrlimit(RLIMIT_FSIZE, &little);
            std::mt19937_64 noise(1);
            for (std::uint64_t i = 0; i < 200'000; ++i) {
                recording.trace().record(base::AllocationEvent{.time = static_cast<base::TimeNs>(i),
                                                               .id = i + 1,
                                                               .address = noise(),
                                                               .bytes = noise() % 1000 + 1});
                if (i % 50'000 == 0) {
                    std::this_thread::sleep_for(milliseconds(300));
                }
            }
            const std::string missing = recording.finish(RunStatus::Done, "{}", "");
            ::_exit(missing.ends_with("; run 1 is saved only in part") ? 0 : 2);
        } catch (...) {
            ::_exit(1);
        }
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    const auto runs = SessionFile::open(path, OpenMode::ReadWrite)->runs();
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_NE(runs[0].status, RunStatus::Done);
}

} // namespace
} // namespace vitrine::app
