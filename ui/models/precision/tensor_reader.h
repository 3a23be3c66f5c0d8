// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Looks at matrices of a model on a thread of its own: files are never read on the GUI thread. The newest question
// counts; answers to older ones are dropped.

#include <QObject>
#include <functional>

#include "ui/models/common/question_thread.h"
#include "ui/models/precision/precision_data.h"

namespace vitrine::ui {

/// Where details come from. All run on the reader's thread and never throw for damaged files: they say it in `error`.
struct TensorSource {
    std::function<std::shared_ptr<const PrecisionTensor>(const PrecisionData& data, std::size_t weight,
                                                         std::size_t format, const base::StopToken& stop)>
        tensor;
    /// The same matrix with further formats, which takes longer; may be empty.
    std::function<std::shared_ptr<const PrecisionTensor>(const PrecisionData& data, std::size_t weight,
                                                         const PrecisionTensor& tensor, const base::StopToken& stop)>
        withOtherFormats;
    std::function<std::shared_ptr<const PrecisionGroup>(const PrecisionData& data, std::size_t weight,
                                                        std::size_t format, std::int64_t group,
                                                        const base::StopToken& stop)>
        group;
};
/// The files of the models that runs used.
TensorSource tensorFiles();

class TensorReader final : public QObject {
    Q_OBJECT

public:
    explicit TensorReader(TensorSource source = tensorFiles(), QObject* parent = nullptr);

    /// Ends in tensorRead(), and where the source has further formats in formatsRead(). `format` is not BF16.
    void askTensor(PrecisionDataPtr data, std::size_t weight, std::size_t format);
    /// Ends in groupRead().
    void askGroup(PrecisionDataPtr data, std::size_t weight, std::size_t format, std::int64_t group);
    void cancel();
    bool busy() const { return busy_; }

signals:
    void tensorRead(const std::shared_ptr<const vitrine::ui::PrecisionTensor>& tensor);
    void formatsRead(const std::shared_ptr<const vitrine::ui::PrecisionTensor>& tensor);
    void groupRead(const std::shared_ptr<const vitrine::ui::PrecisionGroup>& group);

private:
    struct Question {
        PrecisionDataPtr data;
        std::size_t weight = 0, format = 0;
        std::int64_t group = -1; ///< -1: the whole matrix
        unsigned number = 0;
        std::shared_ptr<const PrecisionTensor> due; ///< asks for its further formats too; null: nothing is due
    };
    void ask(Question question);
    void answer(const Question& question, const base::StopToken& stop);
    void addFormats(const Question& question, const std::shared_ptr<const PrecisionTensor>& tensor,
                    const base::StopToken& stop);
    /// Hands an answer to the GUI thread, unless a newer question came. `last`: nothing more follows.
    void deliver(unsigned number, bool last, std::function<void()> tell);

    TensorSource source_;
    unsigned number_ = 0; ///< of the newest question
    bool busy_ = false;
    std::shared_ptr<const PrecisionTensor> due_; ///< its further formats are not there yet; of the GUI thread
    QuestionThread<Question> thread_;            ///< the last member: it uses the others
};

} // namespace vitrine::ui
