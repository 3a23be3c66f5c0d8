// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The Mask Lab without its widgets: two sources A and B at one set of sizes, read, built and counted on worker threads.
// An edit waits a moment for the next one; a newer question stops the work on the older one. What was good stays until
// there is something new. GUI thread only.

#include <QObject>
#include <QTimer>
#include <array>
#include <optional>
#include <string>

#include "sessions/session_file.h"
#include "ui/models/common/latest_job.h"
#include "ui/models/mask_lab/mask_numbers.h"
#include "ui/models/mask_lab/mask_plan.h"
#include "ui/models/mask_lab/mask_study.h"
#include "ui/models/mask_lab/mask_times.h"

namespace vitrine::ui {

class MaskLab final : public QObject {
    Q_OBJECT

public:
    static constexpr int kSides = 2;
    /// Scores that score_mod starts from.
    enum class Scores : std::uint8_t { Zero, One, File };

    struct Side {
        MaskSource source;
        MaskStudyPtr study; ///< of the newest source that was read; null at first
        MaskMapPtr map;     ///< of the newest source without a problem
        MaskStudyPtr mapStudy;
        std::optional<double> density;         ///< of `map`: allowed elements over all
        double densitySeconds = 0;             ///< that it took to count
        std::vector<MaskBlockSize> blockSizes; ///< of `map`; empty: not counted yet
        QString error;                         ///< why the newest source has no map beyond its text
        std::optional<MaskPlan> plan;          ///< of `map`: times of a GPU; empty: not made yet
        std::optional<MaskTimes> times;        ///< measured of this source
        sessions::RunId run = 0;               ///< the run that has them
        MaskSource timedSource;                ///< what was measured
        MaskSizes timedSizes;                  ///< on what sizes, as they were shown then
        bool working = false;
        /// The program or the sizes were changed after it was measured.
        bool timesStale(const MaskSizes& now) const;
        /// Those that belong to the program and the sizes on the screen.
        const MaskTimes* timesOf(const MaskSizes& now) const { return times && !timesStale(now) ? &*times : nullptr; }
    };

    explicit MaskLab(QObject* parent = nullptr);
    ~MaskLab() override;
    MaskLab(const MaskLab&) = delete; // its jobs answer to it
    MaskLab& operator=(const MaskLab&) = delete;

    const Side& side(int index) const { return sides_[static_cast<std::size_t>(index)]; }
    const MaskSizes& sizes() const { return sizes_; }
    std::int64_t batch() const { return batch_; }
    std::int64_t head() const { return head_; }
    Scores scores() const { return scores_; }

    /// Another source as a whole; its times come from setTimes.
    void setSource(int side, const MaskSource& source);
    /// Parts of one. Times stay with the source that was measured.
    void setText(int side, const std::string& text);
    void setExpressions(int side, const std::string& mask, const std::string& score);
    void setParameter(int side, const std::string& name, double value);
    void setCapture(int side, const std::string& name, const std::string& line);
    void setTensorsFile(int side, const std::string& path);
    /// `source` is what was measured.
    /// `sizes`: those that were shown when it was measured.
    void setTimes(int side, std::optional<MaskTimes> times, sessions::RunId run, const MaskSource& source,
                  const MaskSizes& sizes);
    void swapSides();

    void setSizes(const MaskSizes& sizes);
    void setPlane(std::int64_t batch, std::int64_t head);
    void setScores(Scores scores);
    /// The device profile that plans are made for.
    void setPlannedDevice(const std::string& profile);

    /// Nothing is being read, built or counted.
    bool settled() const;
    /// Starts what waits for its moment.
    void flush();
    /// Stops building and counting; what is known stays.
    void stop();

signals:
    void sourceChanged(int side); ///< from outside the editor: the text or its choices are others
    void studyChanged(int side);
    void mapChanged(int side);
    void numbersChanged(int side);
    void timesChanged(int side);
    void sizesChanged();
    void workingChanged();

private:
    struct Built {
        MaskStudyPtr study;
        MaskMapPtr map;
        QString error;
        bool stopped = false;
    };
    struct Work {
        explicit Work(QObject* owner) : build(owner), density(owner), blockSizes(owner), plan(owner) {}
        LatestJob<Built> build;
        LatestJob<std::pair<double, double>> density; ///< and the seconds that it took
        LatestJob<std::vector<MaskBlockSize>> blockSizes;
        LatestJob<std::optional<MaskPlan>> plan;
        base::StopSource stopBuild, stopCount;
        bool dirty = false;
    };

    void changed(int side, int delayMs);
    void start(int side);
    void takeBuilt(int side, const Built& built);
    void count(int side);
    void plan(int side);
    void rebuildAll(int delayMs);
    /// The side that this work belongs to now: sides may have changed places.
    int sideOf(const Work* work) const { return work == work_[0].get() ? 0 : 1; }
    MaskMapPtr atPlane(const MaskMapPtr& map) const;
    static Built build(const MaskSource& source, const MaskSizes& sizes, Scores scores, const base::StopToken& stop);

    std::array<Side, kSides> sides_;
    std::array<std::unique_ptr<Work>, kSides> work_;
    MaskSizes sizes_;
    std::int64_t batch_ = 0, head_ = 0;
    Scores scores_ = Scores::Zero;
    std::string plannedDevice_ = kPlannedDevice;
    QTimer timer_;
};

} // namespace vitrine::ui
