// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reads the data of a fine-tuning run on a thread of its own: a newer question ends the one in progress. Belongs to the
// GUI thread; signals are emitted there.

#include <QObject>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/stop.h"
#include "ui/models/common/question_thread.h"
#include "ui/models/finetune/data_set.h"

namespace vitrine::ui {

class DataJob final : public QObject {
    Q_OBJECT

public:
    explicit DataJob(QObject* parent);

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
        std::shared_ptr<std::atomic<bool>> enough;
    };
    void answer(const Question& question, const base::StopToken& stop);
    void deliver(std::uint64_t number, const DataSetPtr& set, const QString& error);

    std::uint64_t asked_ = 0, answered_ = 0; ///< GUI thread
    std::shared_ptr<std::atomic<bool>> enough_;
    QuestionThread<Question> thread_;
};

} // namespace vitrine::ui
