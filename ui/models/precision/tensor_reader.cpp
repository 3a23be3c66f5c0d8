// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/tensor_reader.h"

#include <exception>

namespace vitrine::ui {

TensorReader::TensorReader(TensorSource source, QObject* parent)
    : QObject(parent), source_(std::move(source)),
      thread_([this](const Question& question, const base::StopToken& stop) { answer(question, stop); }) {}

void TensorReader::askTensor(PrecisionDataPtr data, std::size_t weight, std::size_t format) {
    ask({std::move(data), weight, format, -1, 0});
}

void TensorReader::askGroup(PrecisionDataPtr data, std::size_t weight, std::size_t format, std::int64_t group) {
    ask({std::move(data), weight, format, group, 0});
}

void TensorReader::ask(Question question) {
    question.number = ++number_;
    busy_ = true;
    thread_.ask(std::move(question));
}

void TensorReader::cancel() {
    ++number_;
    busy_ = false;
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
        deliver(question.number, [this, tensor] { emit tensorRead(tensor); });
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
    deliver(question.number, [this, group] { emit groupRead(group); });
}

void TensorReader::deliver(unsigned number, std::function<void()> tell) {
    QMetaObject::invokeMethod(
        this,
        [this, number, tell = std::move(tell)] {
            if (number == number_) {
                busy_ = false;
                tell();
            }
        },
        Qt::QueuedConnection);
}

} // namespace vitrine::ui
