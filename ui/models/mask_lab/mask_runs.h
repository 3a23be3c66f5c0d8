// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The runs of a Mask Lab. Attention runs that are chosen as A and B bring their program, sizes and times into the
// laboratory; a measurement of a side is a run that this class starts, and that becomes the run of its side.

#include <QObject>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ui/models/common/device_feed.h"
#include "ui/models/common/run_controller.h"
#include "ui/models/mask_lab/mask_lab.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

/// Belongs to the GUI thread. What its constructor gets outlives it.
class MaskRuns final : public QObject {
    Q_OBJECT

public:
    /// `runs` null: nothing can be started. `devices` null: measurements run on the processor.
    MaskRuns(MaskLab* lab, SessionDocument* document, RunController* runs, const DeviceFeed* devices, QObject* parent);

    /// Shows the program of an experiment, given as JSON, on a side.
    void takeExperiment(int side, const QString& experimentJson);

    /// Starts a measurement of a side. Nothing happens where whyNotMeasure() has a reason.
    void measure(int side);
    void stop();
    bool measuring() const { return measurement_.mine; }
    QString whyNotMeasure(int side) const;  ///< empty: the side can be measured now
    std::pair<QString, int> device() const; ///< backend and number of the device that measures

    /// Lengths of the sequences of a run, as its experiment or its metrics give them; empty when neither does.
    std::vector<std::int64_t> lengthsOfRun(sessions::RunId run) const;
    /// Makes the sequences of run A the documents of a capture. Where the run's events have to be read for it, the
    /// capture changes later.
    void takeLengths(int side, const QString& capture);

signals:
    void sidesSwapped();
    /// The model that run A names, after each change of the runs. The overrides are the settings of the model's
    /// configuration; `tokens` is the length of the run's longest sequence, 0: not known.
    void modelNamed(const std::string& name, const std::map<std::string, std::string>& overrides, qint64 tokens);
    void measuringChanged();                  ///< a measurement or another run began or ended
    void measuringSaid(const QString& words); ///< how far the measurement is; empty: it has ended
    void failed(const QString& sentence);     ///< empty: what failed before is settled
    void waiting(const QString& sentence);

private:
    struct Measurement {
        int side = 0;
        MaskSource source;
        MaskSizes sizes;
        QString title;
        sessions::RunId run = 0;
        bool mine = false; ///< it is going on
    };

    void connectController();
    void onRuns();
    void onEnded(const QString& status, const QString& error, const QString& metrics);
    void loadRun(int side, const sessions::RunInfo& run);
    void takeRun(int side, const sessions::RunInfo& run, const std::vector<std::string>& modTexts);
    void nameModel();
    void planForDevice();

    MaskLab* lab_;
    SessionDocument* document_;
    RunController* runs_;
    const DeviceFeed* devices_;
    Measurement measurement_;
    /// By side: the run that was loaded; the run of a measurement that the document does not show yet; whether the
    /// times of the loaded run come when it ends.
    std::array<sessions::RunId, MaskLab::kSides> loaded_{}, awaited_{};
    std::array<bool, MaskLab::kSides> timesPending_{};
    QString lengthsFor_; ///< the capture that waits for the requests of run A
    int lengthsSide_ = 0;
};

} // namespace vitrine::ui
