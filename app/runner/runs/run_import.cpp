// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_import.h"

#include <nlohmann/json.hpp>

#include "app/runner/recording/run_recording.h"
#include "base/error.h"
#include "profiler/import/importer.h"

namespace vitrine::app {

sessions::RunId importRun(const std::string& path, const std::string& sessionFile, base::ProgressSink* progress,
                          const base::StopToken& stop) {
    const profiler::Importer& importer = profiler::importerOf(path);
    sessions::RunInfo info;
    info.name = path.substr(path.rfind('/') + 1);
    info.workload = "import " + std::string(importer.name);
    info.specJson = nlohmann::json{{"file", path}, {"format", importer.name}}.dump();
    info.environmentJson = nlohmann::json{{"time_base", "virtual"}}.dump();
    // Virtual time: an importer that reports events faster than they can be written waits.
    RunRecording recording(sessions::SessionFile::open(sessionFile, sessions::OpenMode::CreateOrOpen), info, 0,
                           base::TimeBase::Virtual);
    try {
        const std::string metrics = importer.import(path, recording.trace(), progress, stop);
        recording.finish(sessions::RunStatus::Done, metrics, {});
    } catch (const base::Cancelled& error) {
        recording.finish(sessions::RunStatus::Cancelled, "{}", error.message());
        throw;
    } catch (const base::Error& error) {
        recording.finish(sessions::RunStatus::Failed, "{}", error.message());
        throw;
    }
    return recording.run();
}

} // namespace vitrine::app
