// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// `gpu_tests` without options runs its tests in several processes at once, because their references are computed on the
// CPU and their kernels are compiled there: one after the other, both leave the device and most cores idle. With any
// option or GoogleTest's sharding variables it is an ordinary GoogleTest program.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// They count the memory or the activity of the whole device, so no other process may use it.
const std::set<std::string_view> kAlone = {"GpuDriverMemory", "GpuGiveBack", "GpuKvCache",     "GpuKvGrowth",
                                           "GpuProfile",      "GpuSteps",    "WorkerMemoryGpu"};
/// Their tests take the longest, so they start first, each in a process of its own.
constexpr std::string_view kLong[] = {"GpuModel",         "GpuBatch",     "GpuKvGrowthOf", "Decode",
                                      "FlexAttentionGpu", "ExpertMlpGpu", "WorkerGpu"};
/// These keep the device or its driver busy: many of them at once would only take turns, and each turn has its price.
/// How many of their tests share a process.
const std::map<std::string_view, int> kSharing = {
    {"GpuKvGrowthOf", 1000}, {"WorkerGpu", 1000}, {"GpuModel", 24}, {"GpuBatch", 12}};
constexpr int kSecondsOfAJob = 240;

/// Tests of one suite that one process runs.
struct Job {
    std::string suite;
    std::string filter;
    int order = 0; ///< smaller ones start first: long ones at the end would leave the other processes without work
};

struct SuiteSummary {
    std::size_t jobs = 0; ///< that have not ended
    int passed = 0, skipped = 0;
    bool failed = false;
    double seconds = 0; ///< sum over its processes
};

std::vector<Job> jobsOf(const testing::TestSuite& suite) {
    const std::string name = suite.name();
    const std::string_view last =
        std::string_view(name).substr(name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1);
    const bool isLong = std::find(std::begin(kLong), std::end(kLong), last) != std::end(kLong);
    const bool isFamily = last != name; // tests over lists of values, most of which compile kernels
    // A process takes a quarter of a second to open the device, so short tests share one.
    const auto sharing = kSharing.find(last);
    const int most = kAlone.contains(last) ? 1000 : sharing != kSharing.end() ? sharing->second : isLong ? 1 : 4;
    const int order = isLong ? 0 : isFamily ? 1 : 2;
    std::vector<Job> jobs;
    for (int i = 0; i < suite.total_test_count(); ++i) {
        if (i % most == 0) {
            jobs.push_back({name, "", order});
        }
        std::string& filter = jobs.back().filter;
        filter += (filter.empty() ? "" : ":") + name + "." + suite.GetTestInfo(i)->name();
    }
    return jobs;
}

/// How many tests ended as `label` says: GoogleTest prints it with the test's name and time.
int endedAs(std::string_view label, const std::string& output) {
    std::istringstream lines(output);
    int count = 0;
    for (std::string line; std::getline(lines, line);) {
        count += line.starts_with(label) && line.ends_with(" ms)") ? 1 : 0;
    }
    return count;
}

/// Runs jobs and prints a line for each suite when its last one has ended.
class Runner {
public:
    explicit Runner(std::string program) : program_(std::move(program)) {}

    void run(const std::vector<Job>& jobs, unsigned processes) {
        for (const Job& job : jobs) {
            ++suites_[job.suite].jobs;
        }
        std::atomic<std::size_t> next = 0;
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < processes; ++i) {
            threads.emplace_back([&] {
                for (std::size_t at = next++; at < jobs.size(); at = next++) {
                    runJob(jobs[at]);
                }
            });
        }
    }

    /// Prints the sums; the program's exit status.
    int finish(double seconds) const {
        int passed = 0, skipped = 0;
        std::string failed;
        for (const auto& [name, suite] : suites_) {
            passed += suite.passed;
            skipped += suite.skipped;
            failed += suite.failed ? " " + name : "";
        }
        std::printf("%d passed, %d skipped in %.1f s%s%s\n", passed, skipped, seconds,
                    failed.empty() ? "" : "; failed:", failed.c_str());
        return failed.empty() ? 0 : 1;
    }

private:
    void runJob(const Job& job) {
        const Clock::time_point start = Clock::now();
        // Names of tests hold letters, digits, '_', '/' and '.' only.
        const std::string command = "timeout " + std::to_string(kSecondsOfAJob) + " '" + program_ +
                                    "' --gtest_color=no '--gtest_filter=" + job.filter + "' 2>&1";
        std::string output;
        int status = -1;
        if (std::FILE* pipe = ::popen(command.c_str(), "r")) {
            char buffer[4096];
            for (std::size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
                output.append(buffer, count);
            }
            status = ::pclose(pipe);
        }
        const std::scoped_lock lock(mutex_);
        SuiteSummary& suite = suites_[job.suite];
        suite.seconds += std::chrono::duration<double>(Clock::now() - start).count();
        suite.passed += endedAs("[       OK ] ", output);
        suite.skipped += endedAs("[  SKIPPED ] ", output);
        if (status != 0) {
            suite.failed = true;
            std::printf("%s\n", output.c_str());
        }
        if (--suite.jobs == 0) {
            std::printf("%-6s %-45s %4d tests %7.1f s\n", suite.failed ? "FAILED" : "ok", job.suite.c_str(),
                        suite.passed + suite.skipped, suite.seconds);
            std::fflush(stdout);
        }
    }

    std::string program_;
    std::mutex mutex_;
    std::map<std::string, SuiteSummary> suites_;
};

int runInProcesses() {
    const Clock::time_point start = Clock::now();
    std::vector<Job> together, alone;
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    for (int i = 0; i < tests.total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *tests.GetTestSuite(i);
        for (Job& job : jobsOf(suite)) {
            (kAlone.contains(suite.name()) ? alone : together).push_back(std::move(job));
        }
    }
    std::ranges::stable_sort(together, {}, &Job::order);
    Runner runner(std::filesystem::read_symlink("/proc/self/exe"));
    runner.run(together, std::max(2U, std::thread::hardware_concurrency()));
    runner.run(alone, 1);
    return runner.finish(std::chrono::duration<double>(Clock::now() - start).count());
}

} // namespace

int main(int count, char** arguments) {
    const bool whole = count == 1 && std::getenv("GTEST_TOTAL_SHARDS") == nullptr;
    testing::InitGoogleTest(&count, arguments);
    return whole ? runInProcesses() : RUN_ALL_TESTS();
}
