// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Lets work be done at most so often: what is asked for too soon is done once, when it is time. GUI thread.

#include <QElapsedTimer>
#include <QTimer>
#include <chrono>
#include <functional>

namespace vitrine::ui {

class Pace final {
public:
    Pace(std::chrono::milliseconds every, const std::function<void()>& again, QObject* owner) : every_(every) {
        later_.setSingleShot(true);
        QObject::connect(&later_, &QTimer::timeout, owner, again);
    }

    /// True: not now; `again` is called when it is time. False: it is, and counts as done.
    bool tooSoon() {
        const std::chrono::milliseconds rest =
            every_ - std::chrono::milliseconds(done_.isValid() ? done_.elapsed() : 0);
        if (done_.isValid() && rest.count() > 0) {
            if (!later_.isActive()) {
                later_.start(rest);
            }
            return true;
        }
        later_.stop();
        done_.start();
        return false;
    }
    bool waiting() const { return later_.isActive(); }

private:
    std::chrono::milliseconds every_;
    QElapsedTimer done_; ///< since it was done last
    QTimer later_;
};

} // namespace vitrine::ui
