#pragma once

namespace tally {

// The sanitizer that a source is compiled under: GCC says it by a macro, clang by a feature.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true, kThreadSanitizer = false;
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kAddressSanitizer = false, kThreadSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer),
                      kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false, kThreadSanitizer = false;
#endif
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

}  // namespace tally
