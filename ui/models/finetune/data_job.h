// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reads the data of a fine-tuning run on a thread of its own: a newer question ends the one in progress. Belongs to the
// GUI thread; signals are emitted there.

#include <QObject>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "ui/models/finetune/data_set.h"

namespace vitrine::ui {

class DataJob final : public QObject {
    Q_OBJECT

public:
    explicit DataJob(QObject* parent);
    ~DataJob() override;

    void ask(const std::string& experimentJson);
    /// What was read so far becomes the answer.
    void stop();
    /// There is no question any more.
    void cancel();
    bool busy() const { return asked_ != answered_; }

signals:
    void counted(const vitrine::ui::DataCounts& counts);
    void ready(const vitrine::ui::DataSetPtr& set);
    void failed(const QString& error);

private:
    struct Question {
        std::string experiment;
        std::uint64_t number = 0;
        base::StopToken stop;
        std::shared_ptr<std::atomic<bool>> enough;
    };
    void loop();
    void answer(const Question& question);
    void deliver(std::uint64_t number, const DataSetPtr& set, const QString& error);
    void endCurrent(); ///< with the mutex held

    std::uint64_t asked_ = 0, answered_ = 0; ///< GUI thread
    std::shared_ptr<std::atomic<bool>> enough_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::optional<Question> waiting_;
    base::StopSource current_;
    bool ending_ = false;
    std::thread thread_;
};

} // namespace vitrine::ui
