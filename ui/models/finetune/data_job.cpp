// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/data_job.h"

#include <QMetaObject>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_values.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

DataJob::DataJob(QObject* parent)
    : QObject(parent),
      thread_([this](const Question& question, const base::StopToken& stop) { answer(question, stop); }) {}

void DataJob::ask(const std::string& experimentJson) {
    enough_ = std::make_shared<std::atomic<bool>>(false);
    thread_.ask({experimentJson, ++asked_, enough_});
}

void DataJob::stop() {
    if (busy()) {
        *enough_ = true;
    }
}

void DataJob::cancel() {
    if (busy()) {
        thread_.cancel();
    }
    answered_ = ++asked_;
}

void DataJob::answer(const Question& question, const base::StopToken& stop) {
    const auto send = [this, number = question.number](DataSetPtr set, const QString& error) {
        QMetaObject::invokeMethod(
            this, [this, number, set = std::move(set), error] { deliver(number, set, error); }, Qt::QueuedConnection);
    };
    try {
        const engine::Experiment experiment =
            engine::Experiment::parse(base::parsedObject(question.experiment), "the form");
        send(readDataSet(
                 experiment, stop,
                 [this, number = question.number](const DataCounts& counts) {
                     QMetaObject::invokeMethod(
                         this,
                         [this, number, counts] {
                             if (number == asked_ && busy()) {
                                 emit counted(counts);
                             }
                         },
                         Qt::QueuedConnection);
                 },
                 [enough = question.enough] { return enough->load(); }),
             {});
    } catch (const base::Cancelled&) { // a newer question, or nobody wants to know any more
    } catch (const std::exception& error) {
        send(nullptr, QString::fromUtf8(error.what()));
    }
}

void DataJob::deliver(std::uint64_t number, const DataSetPtr& set, const QString& error) {
    if (number != asked_ || !busy()) {
        return;
    }
    answered_ = asked_;
    if (set) {
        emit ready(set);
    } else {
        emit failed(error);
    }
}

} // namespace vitrine::ui
