// The end of a process in which other threads compile.
#include "host_device/Compiling.h"
#include "gtest/gtest.h"
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <thread>
#include <unistd.h>

using namespace triton_metal;

namespace {

void sleepShortly() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

/// Ends the process in the thread that calls it, while `work` runs in another one.
[[noreturn]] void endBeside(void (*work)(std::promise<void> &)) {
  std::promise<void> begun;
  std::future<void> hasBegun = begun.get_future();
  std::thread(work, std::ref(begun)).detach();
  hasBegun.wait();
  std::exit(0);
}

TEST(Compiling, TheEndOfTheProcessWaitsForTheScopesOfOtherThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(endBeside([](std::promise<void> &begun) {
                Compiling outer;
                begun.set_value();
                sleepShortly();
                Compiling inner; // of the same thread: not held up
                std::cerr << "ended";
              }),
              testing::ExitedWithCode(0), "^ended$");
}

TEST(Compiling, NoScopeBeginsWhileTheProcessEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(endBeside([](std::promise<void> &begun) {
                std::thread([] {
                  std::this_thread::sleep_for(std::chrono::milliseconds(30));
                  Compiling late;
                  std::cerr << "late";
                }).detach();
                Compiling scope;
                begun.set_value();
                sleepShortly();
                std::cerr << "ended";
              }),
              testing::ExitedWithCode(0), "^ended$");
}

TEST(Compiling, AForkedChildDoesNotWaitForThreadsOfItsParent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // A sanitiser may say in the child that it could not stop the parent's threads.
  EXPECT_EXIT(endBeside([](std::promise<void> &begun) {
                Compiling scope;
                if (fork() == 0)
                  std::exit(0);
                begun.set_value();
              }),
              testing::ExitedWithCode(0), "");
}

TEST(Compiling, WhatScopesMakeOnFirstUseOutlivesThem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        {
          Compiling first; // in the thread that ends the process
        }
        endBeside([](std::promise<void> &begun) {
          Compiling scope;
          struct Made {
            ~Made() { std::cerr << "destroyed"; }
          };
          static Made made;
          begun.set_value();
          sleepShortly();
          std::cerr << "ended ";
        });
      },
      testing::ExitedWithCode(0), "^ended destroyed$");
  // The same where that thread has never been in a scope.
  EXPECT_EXIT(
      {
        std::promise<void> begun;
        std::thread([&] {
          Compiling scope;
          begun.set_value();
          sleepShortly();
          std::cerr << "ended ";
        }).detach();
        begun.get_future().wait();
        Compiling::finish();
        std::cerr << "finished";
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^ended finished$");
}

TEST(Compiling, AThreadInAScopeMayEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Compiling scope;
        std::thread([] {
          Compiling::join();
          std::exit(3);
        }).join();
      },
      testing::ExitedWithCode(3), "^$");
}

TEST(Compiling, TheThreadThatEndsTheProcessMayCompile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::atexit([] {
          Compiling last;
          std::cerr << "compiled";
        });
        {
          Compiling scope;
        }
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^compiled$");
}

} // namespace
