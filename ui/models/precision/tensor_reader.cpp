// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/tensor_reader.h"

#include <exception>

namespace vitrine::ui {

TensorSource tensorFiles() {
    const auto files = std::make_shared<TensorFiles>();
    TensorSource source;
    source.tensor = [files](const PrecisionData& data, std::size_t weight, std::size_t format,
                            const base::StopToken& stop) { return files->tensor(data, weight, format, stop); };
    source.withOtherFormats = [files](const PrecisionData& data, std::size_t weight, const PrecisionTensor& tensor,
                                      const base::StopToken& stop) {
        return files->withOtherFormats(data, weight, tensor, stop);
    };
    source.group = [files](const PrecisionData& data, std::size_t weight, std::size_t format, std::int64_t group,
                           const base::StopToken& stop) { return files->group(data, weight, format, group, stop); };
    return source;
}

TensorReader::TensorReader(TensorSource source, QObject* parent)
    : QObject(parent), source_(std::move(source)),
      thread_([this](const Question& question, const base::StopToken& stop) { answer(question, stop); }) {}

void TensorReader::askTensor(PrecisionDataPtr data, std::size_t weight, std::size_t format) {
    due_.reset();
    ask({std::move(data), weight, format, -1, 0, nullptr});
}

void TensorReader::askGroup(PrecisionDataPtr data, std::size_t weight, std::size_t format, std::int64_t group) {
    ask({std::move(data), weight, format, group, 0, due_});
}

void TensorReader::ask(Question question) {
    question.number = ++number_;
    busy_ = true;
    thread_.ask(std::move(question));
}

void TensorReader::cancel() {
    ++number_;
    busy_ = false;
    due_.reset();
    thread_.cancel();
}

void TensorReader::answer(const Question& question, const base::StopToken& stop) {
    // What a file can have wrong is in the answer; what is thrown is a stop, or memory that is not there.
    const auto failed = [](const std::exception& error) { return QString::fromUtf8(error.what()); };
    if (question.group < 0) {
        std::shared_ptr<const PrecisionTensor> tensor;
        try {
            tensor = source_.tensor(*question.data, question.weight, question.format, stop);
        } catch (const std::exception& error) {
            auto empty = std::make_shared<PrecisionTensor>();
            empty->error = failed(error);
            tensor = std::move(empty);
        }
        const bool more = source_.withOtherFormats && tensor->error.isEmpty();
        deliver(question.number, !more, [this, tensor, more] {
            due_ = more ? tensor : nullptr;
            emit tensorRead(tensor);
        });
        if (more) {
            addFormats(question, tensor, stop);
        }
        return;
    }
    std::shared_ptr<const PrecisionGroup> group;
    try {
        group = source_.group(*question.data, question.weight, question.format, question.group, stop);
    } catch (const std::exception& error) {
        auto empty = std::make_shared<PrecisionGroup>();
        empty->error = failed(error);
        group = std::move(empty);
    }
    deliver(question.number, question.due == nullptr, [this, group] { emit groupRead(group); });
    if (question.due) { // the question about the group came before them
        addFormats(question, question.due, stop);
    }
}

void TensorReader::addFormats(const Question& question, const std::shared_ptr<const PrecisionTensor>& tensor,
                              const base::StopToken& stop) {
    std::shared_ptr<const PrecisionTensor> full = tensor;
    try {
        full = source_.withOtherFormats(*question.data, question.weight, *tensor, stop);
    } catch (const std::exception&) {
        full = tensor; // the formats of the run are there
    }
    deliver(question.number, true, [this, full] {
        due_.reset();
        emit formatsRead(full);
    });
}

void TensorReader::deliver(unsigned number, bool last, std::function<void()> tell) {
    QMetaObject::invokeMethod(
        this,
        [this, number, last, tell = std::move(tell)] {
            if (number == number_) {
                busy_ = busy_ && !last;
                tell();
            }
        },
        Qt::QueuedConnection);
}

} // namespace vitrine::ui
