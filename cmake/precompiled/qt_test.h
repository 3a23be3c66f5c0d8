// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "cmake/precompiled/qt_widgets.h"
