// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The request of run A that the views of batches and of the KV cache have chosen together. It lives with the time
// cursor that they share, on the GUI thread.

#include <QObject>
#include <cstdint>

namespace vitrine::ui {

class TimeCursor;

class RequestChoice final : public QObject {
    Q_OBJECT

public:
    /// The one of a cursor; made when it is asked for first. `time` must not be null and keeps it.
    static RequestChoice& of(TimeCursor* time);

    std::int32_t request() const { return request_; } ///< -1: none
    void choose(std::int32_t request);

signals:
    void changed();

private:
    explicit RequestChoice(QObject* parent) : QObject(parent) {}
    std::int32_t request_ = -1;
};

} // namespace vitrine::ui
